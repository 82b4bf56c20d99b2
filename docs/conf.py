"""Settings of the site. With the extra `docs`, this writes it: `python -m sphinx -W --keep-going -n docs build/site`.

The pages are Markdown that also reads well without Sphinx. The API reference comes from the docstrings of the package
that Python imports, so it has to be built.
"""

import inspect

import lsh

project = "lsh"
author = copyright = "The lsh-dedup authors"
version = release = lsh.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
default_role = "py:obj"  # of names in backticks in docstrings
myst_heading_anchors = 4  # the anchors of headings that GitHub makes, too
suppress_warnings = ["config.cache"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings name the types
numpydoc_show_class_members = False  # `:members:` shows them
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = f"lsh {release}"
html_copy_source = html_show_sphinx = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]

# What the names in docstrings may refer to besides the reference, which links to no other site.
nitpick_ignore = [("py:obj", "datetime")]

# The pages of files outside of docs/: links to these files lead to the pages.
PAGES = {"README": "index", "CHANGELOG": "changes", "SECURITY": "security", "benchmarks/README": "benchmarks"}


def note_parameters(app, what, name, documented, options, lines):
    """Note the names of the parameters, to which docstrings refer."""
    if what in ("class", "function", "method"):
        app.env.parameters = getattr(app.env, "parameters", set()) | {*inspect.signature(documented).parameters}


def resolve(app, env, node, shown):
    """Resolve a name in a docstring: a public name of `lsh` becomes a link, the name of a parameter code."""
    if node.get("reftype") != "obj":
        return None
    python = env.get_domain("py")
    node["py:class"] = None
    for node["py:module"] in ("lsh", *sorted(python.modules)):
        link = python.resolve_xref(env, node["refdoc"], app.builder, "obj", node["reftarget"], node, shown)
        if link is not None:
            return link
    return shown if node["reftarget"] in env.parameters else None


def setup(app):
    """Connect the functions above."""
    app.connect("autodoc-process-docstring", note_parameters)
    app.connect("missing-reference", resolve)
