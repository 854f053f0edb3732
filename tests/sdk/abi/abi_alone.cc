// dsat/abi.h compiles alone as C++17; its function pointers are noexcept.
#include "dsat/abi.h"

static_assert(noexcept(dsat_plugin_entry_v1.get_factory(nullptr)), "no exception crosses");
static_assert(noexcept(static_cast<dsat_strategy*>(nullptr)->start(nullptr, nullptr)), "no exception crosses");
static_assert(noexcept(static_cast<dsat_host*>(nullptr)->create_trial(nullptr, nullptr, nullptr)), "nor back");
