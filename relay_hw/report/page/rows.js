// Rows of tables and marks of plots that stand for the same thing: a click on one selects all of them.

// The row of a table, brought into sight, and out of what hides it.
function reveal(row) {
  const found = document.querySelector(`tr[data-row="${row}"]`);
  const hidden = found?.closest("details");
  if (hidden) hidden.open = true;
  found?.scrollIntoView({ block: "nearest" });
}

// Marks what stands for a row, and says its numbers.
function select(row) {
  document.querySelectorAll("[data-row]").forEach((node) => node.classList.toggle("chosen", node.dataset.row === row));
  const tips = [...document.querySelectorAll(`circle[data-row="${row}"] title`)].map((tip) => tip.textContent);
  const told = document.getElementById("chosen");
  if (told) told.textContent = tips.join("; ");
}

// Selects a mark beside the selected one, from left to right.
function step(plot, by) {
  const marks = [...plot.querySelectorAll("circle[data-row]")].sort((a, b) => a.cx.baseVal.value - b.cx.baseVal.value);
  const at = marks.findIndex((mark) => mark.classList.contains("chosen"));
  const first = by > 0 ? 0 : marks.length - 1;
  select(marks[at < 0 ? first : Math.min(Math.max(at + by, 0), marks.length - 1)].dataset.row);
}

function pressed(event) {
  const plot = event.currentTarget;
  const chosen = plot.querySelector("circle.chosen");
  if (event.key === "Enter" && chosen) reveal(chosen.dataset.row);
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  step(plot, by);
}

document.addEventListener("click", (event) => {
  const node = event.target.closest("[data-row]");
  if (!node || event.target.closest("a")) return;
  select(node.dataset.row);
  if (!node.closest("tr")) reveal(node.dataset.row);
});
document.querySelectorAll(".plot").forEach((plot) => plot.addEventListener("keydown", pressed));
document.documentElement.dataset.ready = "1";
