// A loaded plugin: the shared library, its entry point and factories, all checked.
//
// Threading: control thread. Ownership: the library stays mapped while a PluginLibrary or a copy of it lives; nothing
// that came out of it may outlive it.
#ifndef DSAT_HOST_PLUGIN_PLUGIN_LIBRARY_H_
#define DSAT_HOST_PLUGIN_PLUGIN_LIBRARY_H_

#include <filesystem>
#include <memory>
#include <vector>

#include "dsat/abi.h"
#include "dsat/host/plugins.h"

namespace dsat::host {

class PluginLibrary {
 public:
  // Loads the library and checks, before it calls anything in it, that it is a plugin of this ABI.
  static Result<PluginLibrary> load(const std::filesystem::path& file);

  // nullptr when it offers none of this kind.
  const dsat_factory* factory(PluginKind kind) const;

  // What its factories offer; a descriptor that breaks the specification is Status::invalid.
  Result<std::vector<PluginInfo>> describe() const;

 private:
  std::filesystem::path file_;
  std::shared_ptr<void> handle_;  // a boost::dll::shared_library, kept out of this header
  const dsat_plugin_entry* entry_ = nullptr;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_PLUGIN_LIBRARY_H_
