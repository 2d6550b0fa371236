"""Random AFL programs that the checker accepts.

`world` is what a program declares so far; `declarations`, `bodies`, `expressions` and `policies`
write it down, `layout` spreads it over lines and adds comments.
"""
