"""Settings of the site. With the extra `docs`, this writes it: `sphinx-build -W --keep-going -n docs build/site`.

The pages are Markdown that also reads well without Sphinx. The API reference comes from the docstrings of the package
that Python imports, so it has to be built.
"""

import importlib
import inspect
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside this file

import notebooks
from docutils import nodes
from numpydoc.xref import DEFAULT_LINKS
from sphinx import addnodes

import lsh

project = "lsh"
author = copyright = "The lsh-dedup authors"
version = release = lsh.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton"]
default_role = "py:obj"  # of names in backticks in docstrings
myst_heading_anchors = 4  # the anchors of headings that GitHub makes, too
myst_html_meta = {
    "description": "lsh finds near-duplicate documents in Python, in files, on Spark and in an index: MinHash and "
    "locality sensitive hashing, verified by exact Jaccard similarity, with a kept witness for each removed document"
}
copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. |\$ ", True  # which are not copied

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings name the types
numpydoc_show_class_members = False  # `:members:` shows them
numpydoc_xref_param_type = True  # the types of parameters are links, if they are classes of the package
numpydoc_xref_ignore = "all"  # that are not among the aliases, which are below
python_maximum_signature_line_length = 80

smartquotes = False
html_theme = "furo"
html_title = f"lsh {release}"
html_favicon = "icon.svg"
html_copy_source = html_show_sphinx = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
if repository := os.environ.get("GITHUB_REPOSITORY"):  # set where GitHub builds the site: links to the repository
    html_theme_options = {"source_repository": f"https://github.com/{repository}", "source_branch": "main"}
    html_theme_options["source_directory"] = "docs/"

# What the names in docstrings may refer to besides the reference, which links to no other site.
nitpick_ignore = [("py:obj", "datetime")]

# The public classes, by the names in docstrings; `lsh` has some of those of its modules. Those of Python have no link.
numpydoc_xref_aliases = {name: name for name in DEFAULT_LINKS}
for module in ("cache", "index", "presets", "report"):
    names = importlib.import_module(f"lsh.{module}").__all__
    numpydoc_xref_aliases |= {name: f"lsh.{module}.{name}" for name in names}
numpydoc_xref_aliases |= {name: f"lsh.{name}" for name in ("Index", "Screen", *lsh.__all__)}

# Pages that have the text of a file outside of docs/; the index stands for the README, with a text of its own.
ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index",
    "benchmarks/README.md": "benchmarks",
    "benchmarks/results/full-checks.md": "full-checks",
    "CHANGELOG.md": "changes",
    "CONTRIBUTING.md": "contributing",
    "DEVELOPING.md": "developing",
    "SECURITY.md": "security",
    **{f"examples/{path.name}": f"notebook-{path.stem}" for path in (ROOT / "examples").glob("*.ipynb")},
}
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#]+)")


def read_page(app, name, content):
    """Take the text of a page from its file outside of docs/, and lead links to such files to their pages."""
    files = {page: file for file, page in PAGES.items() if page != "index"}
    path = ROOT / files.get(name, f"docs/{name}.md")
    if name in files:
        app.env.note_dependency(path)
        content[0] = notebooks.markdown(path) if path.suffix == ".ipynb" else path.read_text(encoding="utf-8")

    def link(match):
        target = os.path.relpath(path.parent / match[1], ROOT).replace(os.sep, "/")
        target = ROOT / (f"docs/{PAGES[target]}.md" if target in PAGES else target)
        return "](" + os.path.relpath(target, (ROOT / "docs" / name).parent).replace(os.sep, "/")

    content[0] = LINK.sub(link, content[0])


def note_parameters(app, what, name, documented, options, lines):
    """Note the names of the parameters, and of the attributes of a class, to which docstrings refer."""
    if what in ("class", "function", "method"):
        names = {*inspect.signature(documented).parameters, *getattr(documented, "__annotations__", ())}
        app.env.parameters = getattr(app.env, "parameters", set()) | names


def sign(app, what, name, documented, options, signature, returned):
    """Show a class without parameters if its docstring has none: others make its objects."""
    if what == "class" and "Parameters\n" not in (documented.__doc__ or ""):
        return "", None
    return None


def mend(app, doctree):
    """Make code, not a link, of a parameter in its docstring; drop the blank line that ends a doctest in Markdown."""
    for node in list(doctree.findall(addnodes.pending_xref)):
        inside = node
        while node.get("reftype") == "obj" and inside.parent:
            inside = inside.parent
            if isinstance(inside, addnodes.desc):
                names = {parameter[0].astext() for parameter in inside.findall(addnodes.desc_parameter)}
                if node["reftarget"] in names:
                    node.replace_self(node.children)
                    break
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.rawsource.rstrip()
            block[:] = [nodes.Text(block.rawsource)]


def resolve(app, env, node, shown):
    """Resolve a name in a docstring: a public name of `lsh` becomes a link, the name of a parameter code."""
    if node.get("reftype") != "obj":
        return None
    python, target = env.get_domain("py"), node["reftarget"]
    owner, _, attribute = target.rpartition(".")
    if attribute in getattr(getattr(lsh, owner or "-", None), "__annotations__", ()):
        target = owner  # whose docstring describes the attribute
    node["py:class"] = None
    for node["py:module"] in ("lsh", *sorted(python.modules)):
        link = python.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, shown)
        if link is not None:
            return link
    return shown if target in env.parameters else None


def setup(app):
    """Connect the functions above."""
    app.connect("source-read", read_page)
    app.connect("autodoc-process-signature", sign)
    app.connect("autodoc-process-docstring", note_parameters)
    app.connect("doctree-read", mend)
    app.connect("missing-reference", resolve)
