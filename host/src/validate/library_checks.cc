// Reads the file first and opens the needed libraries one at a time, so that a missing one is named.
#include "validate/library_checks.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>

#include "dsat/base/utf8.h"
#include "plugin/isolated_strategy.h"
#include "plugin/plugin_library.h"
#include "validate/elf_file.h"

namespace dsat::host {
namespace {

constexpr const char* kEntrySymbol = "dsat_plugin_entry_v1";
constexpr const char* kTrialSymbol = "dsat_trial_entry";  // the symbol of DSAT_TRIAL, which dsat-trial loads
constexpr const char* kOptionMembers[] = {"name", "type", "default", "min", "max", "choices", "help"};

CheckOutcome failed(std::string reason) { return {CheckStatus::failed, std::move(reason), ""}; }
CheckOutcome warned(std::string reason) { return {CheckStatus::warned, std::move(reason), ""}; }

// Anybody who can write there can put other code into dsat.
bool anybody_writes(const std::filesystem::path& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return false;
  const bool sticky_folder = S_ISDIR(found.st_mode) && (found.st_mode & S_ISVTX) != 0;
  return (found.st_mode & S_IWOTH) != 0 && !sticky_folder;
}

// A plugin's name is part of lib<name>.so, of --searcher <name>, and of log lines that scripts read.
bool is_plain(const std::string& name) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  return !name.empty() && name.front() != '-' && name.find_first_not_of(kPlain) == std::string::npos;
}

std::string defect_of(const PluginInfo& plugin, const std::vector<PluginInfo>& all) {
  if (plugin.id.empty() || plugin.name.empty()) return "a strategy without an id or a name";
  if (!is_plain(plugin.name)) {
    return fmt::format("{}: its name '{}' cannot be typed as one word: use letters, digits, '_', '.' and '-' alone",
                       plugin.id, printable_line(plugin.name));
  }
  if (plugin.summary.find('\n') != std::string::npos) return plugin.id + ": its summary has several lines";
  const auto same = std::count_if(all.begin(), all.end(), [&](const PluginInfo& other) {
    return other.id == plugin.id && other.kind == plugin.kind;
  });
  return same > 1 ? fmt::format("{} is offered {} times", plugin.id, same) : "";
}

// Returns a minor problem of a valid option.
std::string oddity_of(const Json& option, const std::string& role, const std::vector<std::string>& host_options) {
  const std::string name = option["name"];
  if (option.value("help", "").empty()) return fmt::format("option '{}' has no help", name);
  if (std::find(host_options.begin(), host_options.end(), name) != host_options.end()) {
    return fmt::format(
        "option '{0}' is one of dsat-host's own: people would have to type --{1}.{0}; give it another name", name,
        role);
  }
  for (const auto& member : option.items()) {
    const bool known = std::any_of(std::begin(kOptionMembers), std::end(kOptionMembers),
                                   [&](const char* one) { return member.key() == one; });
    if (!known) {
      return fmt::format("option '{}' has a member '{}', which nothing reads; an option has {}", name,
                         printable_line(member.key()), fmt::join(kOptionMembers, ", "));
    }
  }
  return "";
}

}  // namespace

CheckOutcome check_described(const std::vector<PluginInfo>& all, const std::vector<std::string>& host_options) {
  for (const PluginInfo& plugin : all) {
    if (const std::string defect = defect_of(plugin, all); !defect.empty()) return failed(defect);
  }
  for (const PluginInfo& plugin : all) {
    if (plugin.id.find('.') == std::string::npos) {
      return warned(fmt::format("the id '{0}' is not unique: call it YOURS.{0}", plugin.id));
    }
    if (plugin.version.empty() || plugin.summary.empty()) return warned(plugin.id + ": no version, or no summary");
    const char* role = plugin.kind == PluginKind::searcher ? "searcher" : "profiler";
    for (const Json& option : plugin.options) {
      const std::string oddity = oddity_of(option, role, host_options);
      if (!oddity.empty()) return warned(fmt::format("{}: {}", plugin.id, oddity));
    }
  }
  return {};
}

std::vector<PluginInfo> described(const std::filesystem::path& file) {
  return is_python_plugin(file) ? describe_apart(file, PluginProcesses()) : PluginLibrary::load(file)->describe();
}

CheckOutcome check_file(const CheckContext& context) {
  const bool python = is_python_plugin(context.file);
  const std::vector<std::string> exports = python ? std::vector<std::string>() : read_elf(context.file).exports;
  const auto offers = [&](const char* symbol) {
    return std::find(exports.begin(), exports.end(), symbol) != exports.end();
  };
  if (offers(kTrialSymbol) && !offers(kEntrySymbol)) {
    return failed(
        fmt::format("it is a trial, not a plugin: give it to dsat-trial, as --trial {}", context.file.string()));
  }
  const std::filesystem::path folder = std::filesystem::absolute(context.file).parent_path();
  if (anybody_writes(context.file))
    return warned(fmt::format("anybody may write to it: chmod o-w {}", context.file.string()));
  if (anybody_writes(folder))
    return warned(fmt::format("anybody may write to its folder: chmod o-w {}", folder.string()));
  return {};
}

CheckOutcome check_dependencies(const CheckContext& context) {
  if (is_python_plugin(context.file)) return {};  // what it imports is found when it is loaded
  std::vector<std::string> missing;
  const ElfFile elf = read_elf(context.file);
  context.doing("the libraries that it needs are opened");
  for (const std::string& name : elf.needed) {
    // A library's own search path finds more than this program's, so only libraries that it cannot load either are
    // missing.
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
  if (is_python_plugin(context.file)) return described(context.file), CheckOutcome();
  const auto library = PluginLibrary::load(context.file);
  if (library->entry().struct_size != sizeof(dsat_plugin_entry)) {
    return failed(fmt::format("its entry point says struct_size {}, but every version has {}",
                              library->entry().struct_size, sizeof(dsat_plugin_entry)));
  }
  if (library->entry().abi_minor > DSAT_ABI_MINOR) {
    return warned(
        fmt::format("made for plugin ABI 1.{}, this dsat has 1.{}", library->entry().abi_minor, DSAT_ABI_MINOR));
  }
  return {};
}

CheckOutcome check_descriptor(const CheckContext& context) {
  context.doing("its descriptors are read");
  const std::vector<PluginInfo> all = described(context.file);
  const CheckOutcome outcome = check_described(all, context.host_options);
  if (outcome.status == CheckStatus::failed) return outcome;
  context.doing("its descriptors are read again");
  const std::vector<PluginInfo> again = described(context.file);
  const bool alike = std::equal(all.begin(), all.end(), again.begin(), again.end(), [](const auto& a, const auto& b) {
    return a.id == b.id && a.name == b.name && a.options == b.options && a.study == b.study;
  });
  return alike ? outcome : failed("its descriptors are not the same when they are read again");
}

CheckOutcome check_exports(const CheckContext& context) {
  if (is_python_plugin(context.file)) return {};
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
