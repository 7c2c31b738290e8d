"""All that is true of one agent, and nothing else knows it: a module or small package per agent."""
