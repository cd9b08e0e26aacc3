"""Loads modules that mixdown wrote without PyTorch, and compares rules and decisions with what Go expects."""

import json
import sys
import types


class Anything(types.ModuleType):
    """Stands in for PyTorch: the rules need nothing of it."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)


for name in ("torch", "torch.distributed", "torch.distributed._functional_collectives",
             "torch.distributed.distributed_c10d"):
    sys.modules[name] = Anything(name)

with open(sys.argv[1], encoding="utf-8") as file:
    examples = json.load(file)
for number, example in enumerate(examples):
    space = {"__name__": "mixdown_shim"}
    exec(compile(example["module"], "example %d" % number, "exec"), space)
    rules = [[r.op, r.least, r.most, r.group, r.backend] for r in space["RULES"]]
    assert rules == example["rules"], (number, rules, example["rules"])
    for d in example["decisions"]:
        _, rule = space["decide"](d["op"], None if d["bytes"] < 0 else d["bytes"], "", d["group"])
        found = rule.backend if rule else ""
        assert found == d["backend"], (number, d, found)
