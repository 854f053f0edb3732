// A loaded plugin: the shared library, its entry point and factories, all checked.
//
// Threading: control thread. Ownership: shared; every PluginInfo and Strategy of the library keeps it mapped, so a
// study opens a plugin once, and nothing that came out of it may outlive them. Errors: dsat::Error, "plugin FILE: ...".
#ifndef DSAT_HOST_PLUGIN_PLUGIN_LIBRARY_H_
#define DSAT_HOST_PLUGIN_PLUGIN_LIBRARY_H_

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "dsat/abi.h"
#include "dsat/host/plugins.h"

namespace dsat::host {

class PluginLibrary : public std::enable_shared_from_this<PluginLibrary> {
 public:
  // Loads the library and checks, before it calls anything in it, that it is a plugin of this ABI.
  static std::shared_ptr<const PluginLibrary> load(const std::filesystem::path& file);

  // nullptr when it offers none of this kind.
  const dsat_factory* factory(PluginKind kind) const;

  const dsat_plugin_entry& entry() const { return entry_; }

  // What its factories offer. Throws Error for a descriptor that breaks the specification.
  std::vector<PluginInfo> describe() const;

 private:
  PluginLibrary(std::filesystem::path file, std::shared_ptr<void> handle, const dsat_plugin_entry& entry)
      : file_(std::move(file)), handle_(std::move(handle)), entry_(entry) {}

  std::filesystem::path file_;
  std::shared_ptr<void> handle_;  // a boost::dll::shared_library, kept out of this header
  const dsat_plugin_entry& entry_;
};

}  // namespace dsat::host

#endif  // DSAT_HOST_PLUGIN_PLUGIN_LIBRARY_H_
