"""Runs the cells of a notebook, without Jupyter, and writes it with their outputs.
Usage: TRIALSCAN="npx trialscan" PYTHONPATH=python python3 test/python/notebook.py examples/notebook.ipynb [OUT]
"""
import ast, contextlib, io, json, os, pathlib, sys

path = pathlib.Path(sys.argv[1]).absolute()
out = pathlib.Path(sys.argv[-1]).absolute()
notebook = json.loads(path.read_text(encoding="utf-8"))
names = {}
os.chdir(path.parent)
for count, cell in enumerate((cell for cell in notebook["cells"] if cell["cell_type"] == "code"), 1):
    code, printed, shown = ast.parse("".join(cell["source"])), io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        last = code.body.pop() if isinstance(code.body[-1], ast.Expr) else None
        exec(compile(code, "cell", "exec"), names)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    cell["execution_count"], cell["outputs"] = count, []
    if printed.getvalue():
        cell["outputs"].append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(True)})
    if shown is not None:
        data = {"text/plain": repr(shown).splitlines(True)}
        # A page is as long as the trial is large: a notebook shows its own when it is run.
        if hasattr(shown, "to_html"):
            data["text/html"] = shown.to_html().splitlines(True)
        cell["outputs"].append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
out.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
