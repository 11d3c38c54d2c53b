"""Whether the set-up is right: looks at every part that homeai needs, and says what mends what is wrong.

`checks` has one function a part, `selftest` runs the engine in a child, `report` puts it together; `builds` knows the
builds of llama.cpp and which suits this machine, `install` puts one in and takes it back when it fails.
"""
