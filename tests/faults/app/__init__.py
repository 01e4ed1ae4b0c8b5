"""An app whose tasks, keys, middleware and receivers raise what a file asks for."""
