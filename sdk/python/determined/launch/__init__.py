"""Launch modules: python3 -m determined.launch.deepspeed SCRIPT... dsat-host replaces them in an experiment."""
