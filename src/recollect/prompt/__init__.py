"""The prompt: how remembered text stands before a model, as neutral, fenced data without orders to the model."""
