"""One self-contained HTML page of a trace: its data, and the page that shows them."""
