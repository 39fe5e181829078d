"""The fluent way to write a network: streams, boxes, joins. Building runs nothing."""
