// Asks the loader which file holds this code. The folders of an installation are known relative to its bin folder.
#include "base/installed.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <system_error>

#include "dsat/error.h"

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

// The paths that a file beside the helper programs may have, the nearest first.
std::vector<fs::path> places_of_helper(const std::string& program) {
  std::vector<fs::path> places;
  for (const fs::path& folder : own_folders()) {
    add(places, folder / program);
    add(places, (folder / DSAT_LIBEXEC_DIR_FROM_BIN / program).lexically_normal());
  }
  add(places, fs::path(DSAT_LIBEXEC_DIR) / program);
  return places;
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

fs::path find_helper(const std::string& program, const fs::path& given, const std::string& advice) {
  const std::vector<fs::path> places = given.empty() ? places_of_helper(program) : std::vector{fs::absolute(given)};
  for (const fs::path& place : places) {
    std::error_code error;
    if (!fs::exists(place, error)) continue;
    if (access(place.c_str(), X_OK) == 0) return place;
    throw Error(fmt::format("{} may not be run: its mode or its file system forbids it", place.string()));
  }
  if (!given.empty()) throw Error(fmt::format("{}: no such file", given.string()));
  throw Error(fmt::format("no {}: it is neither in {} nor at {}; install dsat, {}", program,
                          places.front().parent_path().string(), places.back().string(), advice));
}

fs::path find_bundled_simulation(const std::string& name) {
  for (const fs::path& place : places_of_helper("simulations/" + name + ".json")) {
    std::error_code error;
    if (fs::exists(place, error)) return place;
  }
  return {};
}

}  // namespace dsat::host
