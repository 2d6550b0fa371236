"""What a workflow looks like: `model` makes a graph of a compiled program, the others draw it.

`mermaid`, `dot`, `text`, `json_form` and `svg` each turn a graph into text. `layers` sorts items by
what they wait for. For the SVG, `layout` puts clusters together that `level` lays out one by one,
with `coordinates` for places from left to right, `geometry` and `metrics` for shapes and sizes,
`style` and `icons` for the looks. Everything here is pure and gives the same text for the same
program.
"""
