"""What must hold for all allowed sizes: subscripts in bounds, intents, legal directives, independent iterations."""
