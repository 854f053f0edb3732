// A loaded and checked plugin: the shared library, its entry point and factories.
// Threading: control thread. Ownership: shared; every PluginInfo and Strategy of the library keeps it mapped, so a
// study opens a plugin once, and nothing from the library may outlive them. Errors: dsat::Error, "plugin FILE: ...".
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
  // Loads the library. Checks that it is a plugin of this ABI before it calls any of its functions.
  static std::shared_ptr<const PluginLibrary> load(const std::filesystem::path& file);

  // Returns nullptr if the library has none of this kind.
  const dsat_factory* factory(PluginKind kind) const;

  const dsat_plugin_entry& entry() const { return entry_; }

  // Returns what the factories offer. Throws Error for a wrong descriptor.
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
