"""What editors need of the language: its words, a Pygments lexer, a TextMate grammar, an extension for VS Code."""
