"""The routes of the console, by topic. docs/console-api.md describes their JSON."""
