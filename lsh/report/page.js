"use strict";
const keyOf = (row, column, numeric) => {
  const cell = row.cells[column];
  return numeric ? Number(cell.dataset.value ?? -Infinity) : cell.textContent.trim();
};
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const body = head.closest("table").tBodies[0];
    const numeric = head.dataset.sort === "number";
    const before = head.getAttribute("aria-sort");
    const up = before ? before === "descending" : !numeric;
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const keyed = Array.from(body.rows, (row) => [keyOf(row, head.cellIndex, numeric), row]);
    keyed.sort(([a], [b]) => (up ? 1 : -1) * (numeric ? a - b || 0 : a.localeCompare(b, "en", { numeric: true })));
    body.append(...keyed.map(([, row]) => row));
  });
}
