import svelte from "eslint-plugin-svelte";
import globals from "globals";
import ts from "typescript-eslint";
import svelteConfig from "./svelte.config.js";

export default ts.config(
  { ignores: ["node_modules", "*.config.js", "vite.config.ts"] },
  ...ts.configs.strict,
  ...svelte.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    rules: {
      "max-lines": ["error", { max: 300 }],
      complexity: ["error", 12],
      eqeqeq: "error",
      "prefer-const": "error",
      "no-console": "error",
    },
  },
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: {
      parserOptions: { parser: ts.parser, extraFileExtensions: [".svelte"], svelteConfig },
    },
    rules: {
      "svelte/no-at-html-tags": "error", // nothing of a network is ever read as HTML
      "prefer-const": "off", // bindable properties are declared with let; svelte/prefer-const knows them
      "svelte/prefer-const": "error",
    },
  },
);
