// Reads the file first, and opens the libraries that it needs one at a time, so that the one that is missing has a
// name.
#include "validate/library_checks.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "plugin/plugin_library.h"
#include "validate/elf_file.h"

namespace dsat::host {
namespace {

constexpr const char* kEntrySymbol = "dsat_plugin_entry_v1";

CheckOutcome failed(std::string reason) { return {CheckStatus::failed, std::move(reason), ""}; }
CheckOutcome warned(std::string reason) { return {CheckStatus::warned, std::move(reason), ""}; }

// Anybody who may write there may put other code into dsat.
bool anybody_writes(const std::filesystem::path& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return false;
  const bool sticky_folder = S_ISDIR(found.st_mode) && (found.st_mode & S_ISVTX) != 0;
  return (found.st_mode & S_IWOTH) != 0 && !sticky_folder;
}

}  // namespace

CheckOutcome check_file(const CheckContext& context) {
  read_elf(context.file);
  const std::filesystem::path folder = std::filesystem::absolute(context.file).parent_path();
  if (anybody_writes(context.file))
    return warned(fmt::format("anybody may write to it: chmod o-w {}", context.file.string()));
  if (anybody_writes(folder))
    return warned(fmt::format("anybody may write to its folder: chmod o-w {}", folder.string()));
  return {};
}

CheckOutcome check_dependencies(const CheckContext& context) {
  std::vector<std::string> missing;
  const ElfFile elf = read_elf(context.file);
  context.doing("the libraries that it needs are opened");
  for (const std::string& name : elf.needed) {
    // By its own search path a library finds more than by this program's: what is missing is only what it says itself.
    if (dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL) == nullptr) missing.push_back(name);
  }
  if (missing.empty()) return {};
  context.doing("it is opened");
  if (dlopen(std::filesystem::absolute(context.file).c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) return {};
  return failed(fmt::format("{} => not found: install it, or name its folder in LD_LIBRARY_PATH or by -Wl,-rpath",
                            fmt::join(missing, ", ")));
}

CheckOutcome check_loading(const CheckContext& context) {
  context.doing("it is loaded");
  const auto library = PluginLibrary::load(context.file);
  if (library->entry().struct_size != sizeof(dsat_plugin_entry)) {
    return failed(fmt::format("its entry point says struct_size {}, it is {} in every version",
                              library->entry().struct_size, sizeof(dsat_plugin_entry)));
  }
  if (library->entry().abi_minor > DSAT_ABI_MINOR) {
    return warned(
        fmt::format("made for plugin ABI 1.{}, this dsat has 1.{}", library->entry().abi_minor, DSAT_ABI_MINOR));
  }
  return {};
}

CheckOutcome check_descriptor(const CheckContext& context) {
  const auto library = PluginLibrary::load(context.file);
  context.doing("its descriptors are read");
  const std::vector<PluginInfo> all = library->describe();
  for (const PluginInfo& plugin : all) {
    if (plugin.id.empty() || plugin.name.empty()) return failed("a strategy without an id or a name");
    if (plugin.summary.find('\n') != std::string::npos) return failed(plugin.id + ": its summary has several lines");
    const auto same = std::count_if(all.begin(), all.end(), [&](const PluginInfo& other) {
      return other.id == plugin.id && other.kind == plugin.kind;
    });
    if (same > 1) return failed(fmt::format("{} is offered {} times", plugin.id, same));
  }
  context.doing("its descriptors are read again");
  const std::vector<PluginInfo> again = library->describe();
  const bool alike = std::equal(all.begin(), all.end(), again.begin(), again.end(), [](const auto& a, const auto& b) {
    return a.id == b.id && a.name == b.name && a.options == b.options && a.study == b.study;
  });
  if (!alike) return failed("its descriptors are not the same when they are read again");
  for (const PluginInfo& plugin : all) {
    if (plugin.id.find('.') == std::string::npos) {
      return warned(fmt::format("the id '{0}' could be anybody's: call it YOURS.{0}", plugin.id));
    }
    if (plugin.version.empty() || plugin.summary.empty()) return warned(plugin.id + ": no version, or no summary");
    for (const Json& option : plugin.options) {
      if (option.value("help", "").empty()) {
        return warned(fmt::format("{}: option '{}' has no help", plugin.id, option["name"].get<std::string>()));
      }
    }
  }
  return {};
}

CheckOutcome check_exports(const CheckContext& context) {
  std::vector<std::string> others = read_elf(context.file).exports;
  others.erase(std::remove(others.begin(), others.end(), kEntrySymbol), others.end());
  if (others.empty()) return {};
  const size_t count = others.size();
  others.resize(std::min<size_t>(count, 3));
  return warned(
      fmt::format("exports {} symbols beside {} ({}{}): another library's may take their place; "
                  "dsat_add_plugin hides them",
                  count, kEntrySymbol, fmt::join(others, ", "), count > 3 ? ", ..." : ""));
}

}  // namespace dsat::host
