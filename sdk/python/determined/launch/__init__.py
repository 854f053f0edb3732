"""Launch modules: python3 -m determined.launch.deepspeed SCRIPT... In an experiment dsat-host replaces them."""
