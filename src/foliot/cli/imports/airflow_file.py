"""Reads the DAGs of an Airflow file from its source, without executing it, and turns them into scheduled workflows.

Each operator becomes a step. An operator without an equal becomes a step with a task of your own, and a note says which
function to write. Statements that make tasks in a loop or under a condition are left out, with their line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeGuard

from foliot.cli.imports.airflow_schedule import schedule_of
from foliot.cli.imports.airflow_steps import fields_of_function, step_of
from foliot.cli.imports.imported_jobs import Entry, Imported, Note
from foliot.cli.imports.python_values import UnknownValue, Values, last_name
from foliot.errors import Invalid


@dataclass(slots=True)
class Dag:
    name: str
    line: int
    options: dict[str, ast.expr]
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    after: dict[str, list[str]] = field(default_factory=dict)

    def put_after(self, later: Sequence[str], earlier: Sequence[str]) -> None:
        for step in later:
            known = self.after.setdefault(step, [])
            known.extend(key for key in earlier if key not in known)


@dataclass(slots=True)
class Tasks:
    """The tasks that an expression stands for: one, several, or a group. Others run before its first ones and after
    its last ones."""

    dag: Dag
    firsts: list[str]
    lasts: list[str]


def read_dags(text: str, source: str) -> Imported:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        raise Invalid(f"{source}:{line}: this is not Python: {getattr(error, 'msg', error)}") from None
    reader = _Reader()
    reader.read(tree.body, None, "")
    for dag in reader.dags:
        reader.finish(dag)
    if not reader.dags:
        raise Invalid(f"{source}: the file has no DAG(...) and no function with @dag")
    reader.found.notes.sort(key=lambda note: note.line)
    return reader.found


class _Reader:
    def __init__(self) -> None:
        self.found = Imported()
        self.dags: list[Dag] = []
        self._values = Values()
        self._names: dict[str, Tasks] = {}
        self._named_dags: dict[str, Dag] = {}
        self._lists: dict[str, list[ast.expr]] = {}
        """Lists of tasks, by name."""
        self._functions: dict[str, tuple[ast.FunctionDef | ast.AsyncFunctionDef, dict[str, ast.expr]]] = {}
        """Functions with @task and the arguments of the decorator, by name."""
        self._groups: set[str] = set()
        """Functions with @task_group."""

    def read(self, body: Sequence[ast.stmt], dag: Dag | None, prefix: str) -> None:
        for statement in body:
            self._read_statement(statement, dag, prefix)

    def _read_statement(self, statement: ast.stmt, dag: Dag | None, prefix: str) -> None:
        match statement:
            case ast.With(items=items, body=body):
                self._read_with(items, body, dag, prefix)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._read_function(statement, dag)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if is_dag(value):
                    self._named_dags[name] = self._new_dag(value)
                else:
                    self._name_tasks(name, value, dag, prefix)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._name_tasks(name, value, dag, prefix)
            case ast.Expr(value=value):
                self._tasks_of(value, dag, prefix)
            case _ if any(makes_task(node) or self._is_function(node) for node in ast.walk(statement)):
                kind = type(statement).__name__.lower()
                self._leave_out(statement, f"tasks made in a {kind!r} statement are known only when the file runs")

    def _read_with(self, items: list[ast.withitem], body: list[ast.stmt], dag: Dag | None, prefix: str) -> None:
        for item in items:
            call = item.context_expr
            name = item.optional_vars.id if isinstance(item.optional_vars, ast.Name) else ""
            if is_dag(call):
                dag = self._new_dag(call)
                self._named_dags[name] = dag
            elif isinstance(call, ast.Name) and call.id in self._named_dags:
                dag = self._named_dags[call.id]
            elif isinstance(call, ast.Call) and last_name(call.func) == "TaskGroup" and dag is not None:
                self._read_group(call, name, body, dag, prefix)
                return
        self.read(body, dag, prefix)

    def _read_group(self, call: ast.Call, name: str, body: list[ast.stmt], dag: Dag, prefix: str) -> None:
        key = self._text(call, "group_id", 0) or name
        before = set(dag.steps)
        self.read(body, dag, f"{prefix}{key}.")
        inside = [step for step in dag.steps if step not in before]
        followed = {earlier for step in inside for earlier in dag.after.get(step, ())}
        firsts = [step for step in inside if not set(dag.after.get(step, ())) & set(inside)]
        self._names[name] = Tasks(dag, firsts, [step for step in inside if step not in followed])

    def _read_function(self, function: ast.FunctionDef | ast.AsyncFunctionDef, dag: Dag | None) -> None:
        for decorator in function.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            place = call.func if call else decorator
            if last_name(place) == "dag":
                inner = self._new_dag(call, function.name, function.lineno)
                self.read(function.body, inner, "")
                return
            if last_name(place) == "task_group":
                self._groups.add(function.name)
                return
            if is_task(place):
                self._functions[function.name] = (function, options_of(call) if call else {})
                return

    def _new_dag(self, call: ast.Call | None, name: str = "", line: int = 0) -> Dag:
        options = options_of(call) if call else {}
        given = self._text(call, "dag_id", 0) if call else ""
        dag = Dag(given or name, call.lineno if call else line, options)
        if not dag.name:
            self.found.left_out.append(Note(dag.line, "a DAG whose name is known only when the file runs"))
        else:
            self.dags.append(dag)
        return dag

    def _name_tasks(self, name: str, value: ast.expr, dag: Dag | None, prefix: str) -> None:
        tasks = self._tasks_of(value, dag, prefix)
        if tasks is not None:
            self._names[name] = tasks
            if isinstance(value, ast.List | ast.Tuple):
                self._lists[name] = value.elts
        else:
            self._values.assign(name, value)

    def _tasks_of(self, node: ast.expr, dag: Dag | None, prefix: str) -> Tasks | None:
        """The tasks that an expression makes, names or puts in order."""
        match node:
            case ast.Name(id=name):
                return self._names.get(name)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                found = [tasks for item in items if (tasks := self._tasks_of(item, dag, prefix))]
                firsts = [key for tasks in found for key in tasks.firsts]
                return Tasks(found[0].dag, firsts, [key for tasks in found for key in tasks.lasts]) if found else None
            case ast.BinOp(left=left, op=ast.RShift() | ast.LShift() as operator, right=right):
                return self._in_order(left, operator, right, dag, prefix)
            case ast.Call():
                return self._call(node, dag, prefix)
            case ast.Attribute(value=owner, attr="output") | ast.Subscript(value=owner):
                return self._tasks_of(owner, dag, prefix)
        return None

    def _in_order(
        self, left: ast.expr, operator: ast.operator, right: ast.expr, dag: Dag | None, prefix: str
    ) -> Tasks | None:
        one, two = self._tasks_of(left, dag, prefix), self._tasks_of(right, dag, prefix)
        if one is None or two is None:
            place = left if one is None else right
            self._leave_out(place, f"{ast.unparse(place)[:60]} is no task of this file, so its order is left out")
        else:
            earlier, later = (one, two) if isinstance(operator, ast.RShift) else (two, one)
            one.dag.put_after(later.firsts, earlier.lasts)
        return two or one

    def _call(self, node: ast.Call, dag: Dag | None, prefix: str) -> Tasks | None:
        name = last_name(node.func)
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if owner is not None and name in ("set_downstream", "set_upstream") and node.args:
            operator = ast.RShift() if name == "set_downstream" else ast.LShift()
            return self._in_order(owner, operator, node.args[0], dag, prefix)
        if name in ("chain", "cross_downstream"):
            self._chain(node, name, dag, prefix)
            return None
        if name in self._groups:
            self._leave_out(node, f"the task group {name}: write its tasks as steps, or as a workflow of their own")
            return None
        if name in self._functions:
            step, key = self._function_step(node, name)
            return self._add(step, key, node, dag, prefix)
        if owner is not None and last_name(owner) in self._functions:
            self._leave_out(node, f"{last_name(owner)}.{name}(): write the step, or a map, yourself")
            return None
        if not makes_task(node):
            return None
        dag = self._named_dags.get(last_name(options_of(node).get("dag", node)), dag)
        key = self._text(node, "task_id", 0)
        if not key:
            self._leave_out(node, f"a {name} whose task_id is known only when the file runs")
            return None
        step = step_of(name, options_of(node), key, self._values, self.found, node.lineno)
        made = self._add(step, key, node, dag, prefix)
        if made is not None:
            for earlier in self._used_results(options_of(node)):
                earlier.dag.put_after(made.firsts, earlier.lasts)
        return made

    def _used_results(self, options: dict[str, ast.expr]) -> Iterator[Tasks]:
        """Tasks whose results an operator gets as arguments: it runs after them."""
        for node in (inner for option in options.values() for inner in ast.walk(option)):
            if isinstance(node, ast.Name) and node.id in self._names:
                yield self._names[node.id]

    def _chain(self, node: ast.Call, name: str, dag: Dag | None, prefix: str) -> None:
        """Two lists of one length in a chain are put in order pair by pair, as in Airflow."""
        parts = [part for argument in node.args for part in self._unpacked(argument)]
        for one, two in pairwise(parts):
            lists = self._elements(one), self._elements(two)
            if name == "chain" and lists[0] and lists[1] and len(lists[0]) == len(lists[1]):
                for left, right in zip(*lists, strict=True):
                    self._in_order(left, ast.RShift(), right, dag, prefix)
            else:
                self._in_order(one, ast.RShift(), two, dag, prefix)

    def _unpacked(self, node: ast.expr) -> list[ast.expr]:
        return self._elements(node.value) or [node] if isinstance(node, ast.Starred) else [node]

    def _elements(self, node: ast.expr) -> list[ast.expr]:
        """The expressions of a list of tasks, which a name may stand for."""
        if isinstance(node, ast.List | ast.Tuple):
            return node.elts
        return self._lists.get(last_name(node), [])

    def _is_function(self, node: ast.AST) -> bool:
        """Whether it calls or declares a function that is a task."""
        if isinstance(node, ast.Call):
            return last_name(node.func) in self._functions.keys() | self._groups
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        places = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
        return any(map(is_task, places))

    def _function_step(self, node: ast.Call, name: str) -> tuple[dict[str, Any], str]:
        """The step of a function with @task, and its key: results of other steps are its arguments."""
        function, decorated = self._functions[name]
        parameters = [argument.arg for argument in function.args.args]
        payload = dict(zip(parameters, node.args, strict=False)) | options_of(node)
        self.found.notes.append(Note(function.lineno, f"declare the function {name} with @app.task instead of @task"))
        key = self._text_of(decorated.get("task_id")) or name
        common = fields_of_function(decorated, key, self._values, self.found, function.lineno)
        return {"task": name, "payload": payload, **common}, key

    def _add(self, step: dict[str, Any], key: str, node: ast.Call, dag: Dag | None, prefix: str) -> Tasks | None:
        if dag is None:
            self._leave_out(node, f"the task {key!r} belongs to no DAG of this file")
            return None
        full = unique(f"{prefix}{key}", dag.steps)
        earlier = list(self._resolve_payload(step, dag, prefix))
        dag.steps[full] = step
        dag.put_after([full], earlier)
        return Tasks(dag, [full], [full])

    def _resolve_payload(self, step: dict[str, Any], dag: Dag, prefix: str) -> Iterator[str]:
        """Replaces the expressions in a payload, and yields the steps whose results it takes."""
        payload = step.get("payload", {})
        for name, value in list(payload.items()):
            if not isinstance(value, ast.expr):
                continue
            tasks = self._tasks_of(value, dag, prefix)
            if tasks is not None and len(tasks.lasts) == 1 and (path := self._path(value)) is not None:
                payload[name] = {"$result": tasks.lasts[0], **({"path": path} if path else {})}
                yield tasks.lasts[0]
                continue
            try:
                payload[name] = self._values.of(value)
            except UnknownValue:
                del payload[name]
                self._leave_out(value, f"the argument {name} is known only when the file runs")
        if not payload:
            step.pop("payload", None)

    def _path(self, node: ast.expr) -> list[Any] | None:
        """The part of a result that an expression takes: `["rows", 0]` of `extract()["rows"][0]`; None if unknown."""
        if not isinstance(node, ast.Subscript):
            return []
        try:
            inner, place = self._path(node.value), self._values.of(node.slice)
        except UnknownValue:
            return None
        return [*inner, place] if inner is not None and isinstance(place, str | int) else None

    def finish(self, dag: Dag) -> None:
        if not dag.steps:
            self.found.left_out.append(Note(dag.line, f"the DAG {dag.name!r} has no task that could be read"))
            return
        fields, defaults = schedule_of(dag.name, dag.options, self._values, self.found, dag.line)
        steps = []
        for key, step in dag.steps.items():
            after = {"after": dag.after[key]} if dag.after.get(key) else {}
            steps.append({"key": key, **after, **{k: v for k, v in defaults.items() if k not in step}, **step})
        self.found.entries.append(Entry(dag.line, {"kind": "workflow", **fields, "steps": steps}))

    def _text(self, call: ast.Call, option: str, place: int) -> str:
        return self._text_of(options_of(call).get(option) or (call.args[place] if len(call.args) > place else None))

    def _text_of(self, node: ast.expr | None) -> str:
        try:
            return str(self._values.of(node)) if node is not None else ""
        except UnknownValue:
            return ""

    def _leave_out(self, node: ast.stmt | ast.expr, reason: str) -> None:
        self.found.left_out.append(Note(node.lineno, reason))


def is_dag(node: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and last_name(node.func) == "DAG"


def makes_task(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func).endswith(("Operator", "Sensor"))


def is_task(place: ast.expr) -> bool:
    """Whether a decorator is `@task` or one of its kind, such as `@task.bash`."""
    return last_name(place) == "task" or (isinstance(place, ast.Attribute) and last_name(place.value) == "task")


def options_of(call: ast.Call) -> dict[str, ast.expr]:
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}


def unique(key: str, taken: dict[str, Any]) -> str:
    """Airflow numbers repeated calls of a function in the same way."""
    found, count = key, 1
    while found in taken:
        found, count = f"{key}__{count}", count + 1
    return found
