"""Executes a notebook: execute.py NOTEBOOK RESULT.

What differs from run to run (times of execution, versions of the kernel, ids) is
left out of the result, so that it only changes when an output does.
"""

import sys

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

notebook = nbformat.read(sys.argv[1], as_version=4)
ipc = Config({"KernelManager": {"transport": "ipc"}})  # no port for others on the machine
NotebookClient(notebook, timeout=300, kernel_name="python3", config=ipc, resources={"metadata": {"path": "."}}).execute()
for cell in notebook.cells:
    cell.metadata = {}
notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
nbformat.write(notebook, sys.argv[2])
