// Package readme keeps tables that tests make in the Markdown file that shows them.
package readme
