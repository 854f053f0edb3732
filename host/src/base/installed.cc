// Asks the loader which file holds this code. The folders of an installation are known relative to its bin folder.
#include "base/installed.h"

#include <dlfcn.h>
#include <link.h>

#include <system_error>

#ifndef DSAT_PLUGIN_DIR
#define DSAT_PLUGIN_DIR "/usr/local/lib/dsat/plugins"
#define DSAT_PLUGIN_DIR_FROM_BIN "../lib/dsat/plugins"
#define DSAT_LIBEXEC_DIR "/usr/local/libexec/dsat"
#define DSAT_LIBEXEC_DIR_FROM_BIN "../libexec/dsat"
#define DSAT_BIN_DIR_FROM_LIB "../bin"
#endif

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

struct Module {
  fs::path file;
  bool is_program = true;
};

Module own_module() {
  std::error_code error;
  Dl_info info;
  void* map = nullptr;
  const auto* here = reinterpret_cast<const void*>(&own_module);
  if (dladdr1(here, &info, &map, RTLD_DL_LINKMAP) != 0 && map != nullptr) {
    const char* name = static_cast<const link_map*>(map)->l_name;  // empty: the program itself
    if (name[0] != '\0') return {fs::canonical(name, error), false};
  }
  return {fs::read_symlink("/proc/self/exe", error), true};
}

// The folder of this code, and the bin folder of its installation.
std::vector<fs::path> own_folders() {
  const Module module = own_module();
  if (module.file.empty()) return {};
  const fs::path folder = module.file.parent_path();
  if (module.is_program) return {folder};
  return {folder, (folder / DSAT_BIN_DIR_FROM_LIB).lexically_normal()};
}

void add(std::vector<fs::path>& places, const fs::path& place) {
  for (const fs::path& known : places) {
    if (known == place) return;
  }
  places.push_back(place);
}

}  // namespace

std::vector<fs::path> bundled_plugin_folders() {
  std::vector<fs::path> folders;
  for (const fs::path& folder : own_folders()) {
    add(folders, folder / "plugins");
    add(folders, (folder / DSAT_PLUGIN_DIR_FROM_BIN).lexically_normal());
  }
  add(folders, DSAT_PLUGIN_DIR);
  return folders;
}

std::vector<fs::path> places_of_helper(const std::string& program) {
  std::vector<fs::path> places;
  for (const fs::path& folder : own_folders()) {
    add(places, folder / program);
    add(places, (folder / DSAT_LIBEXEC_DIR_FROM_BIN / program).lexically_normal());
  }
  add(places, fs::path(DSAT_LIBEXEC_DIR) / program);
  return places;
}

std::optional<fs::path> find_helper(const std::string& program) {
  std::error_code error;
  for (const fs::path& place : places_of_helper(program)) {
    if (fs::exists(place, error)) return place;
  }
  return std::nullopt;
}

}  // namespace dsat::host
