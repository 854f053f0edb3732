/* All of the ABI that a plugin and a host share can be reached from these two types. Compiled with one header after
 * another, and their debug information compared, by test_abidiff.py. */
#include "dsat/abi.h"

void surface(const dsat_plugin_entry* entry, const dsat_factory* factory) {
  (void)entry;
  (void)factory;
}
