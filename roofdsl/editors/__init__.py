"""Support for editors: the words of the language, a Pygments lexer, a TextMate grammar, a VS Code extension."""
