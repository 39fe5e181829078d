"""A network for people: explain text, Mermaid, layout, SVG."""
