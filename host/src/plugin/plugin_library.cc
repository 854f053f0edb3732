// Opens a plugin with Boost.DLL and reads its descriptors. Each check names what the plugin's author has to mend;
// nothing of the library but its [load] functions runs.
#include "plugin/plugin_library.h"

#include <fmt/format.h>

#include <boost/dll/shared_library.hpp>
#include <string>
#include <system_error>

#include "plugin/descriptor_check.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMostStrategies = 1000;
constexpr const char* kEntrySymbol = "dsat_plugin_entry_v1";

Error bad_plugin(const fs::path& file, const std::string& why) {
  return Error(fmt::format("plugin {}: {}", file.string(), why));
}

// The part of dlerror's text that a person needs; it starts with the file's name.
std::string loader_message(const std::exception& error, const fs::path& file) {
  std::string text = error.what();
  const std::string prefix = file.string() + ": ";
  const size_t at = text.rfind(prefix);
  if (at != std::string::npos) text = text.substr(at + prefix.size());
  const size_t suffix = text.find(": Bad file descriptor");  // Boost's own name for every failure
  if (suffix != std::string::npos) text.erase(suffix);
  while (!text.empty() && text.back() == ')' && text.find('(') == std::string::npos) text.pop_back();
  return text;
}

// Boost.DLL's error_code overloads lose dlerror's text, so this is the one place that takes its exceptions.
std::shared_ptr<boost::dll::shared_library> open(const fs::path& file) {
  namespace dll = boost::dll;
  try {
    return std::make_shared<dll::shared_library>(file.string(), dll::load_mode::rtld_now | dll::load_mode::rtld_local);
  } catch (const std::exception& error) {
    const std::string text = loader_message(error, file);
    if (text.find("undefined symbol") != std::string::npos) {
      throw bad_plugin(file, text + "; link the plugin with -Wl,-z,defs to find what is missing");
    }
    if (text.find("ELF") != std::string::npos || text.find("file too short") != std::string::npos) {
      throw bad_plugin(file,
                       fmt::format("not a shared library of this machine ({}); give the path of a lib*.so", text));
    }
    throw bad_plugin(file, text);
  }
}

void check_entry(const fs::path& file, const dsat_plugin_entry& entry) {
  if (entry.magic != DSAT_MAGIC) {
    throw bad_plugin(file, fmt::format("{} is not a dsat entry point (wrong magic)", kEntrySymbol));
  }
  if (entry.abi_major != DSAT_ABI_MAJOR) {
    throw bad_plugin(file,
                     fmt::format("built for plugin ABI {}, this dsat has {}; rebuild it against this version's SDK",
                                 entry.abi_major, DSAT_ABI_MAJOR));
  }
  if (!DSAT_HAS(&entry, dsat_plugin_entry, get_factory) || entry.get_factory == nullptr) {
    throw bad_plugin(file, "its entry point has no get_factory");
  }
}

PluginInfo describe_one(const fs::path& file, PluginKind kind, const dsat_plugin_entry& entry,
                        const dsat_descriptor* raw) {
  if (raw == nullptr || !DSAT_HAS(raw, dsat_descriptor, options_json) || raw->id == nullptr || raw->name == nullptr ||
      raw->version == nullptr || raw->summary == nullptr || raw->options_json == nullptr) {
    throw bad_plugin(file, "a descriptor is incomplete (plugin defect)");
  }
  PluginInfo info;
  info.file = file;
  info.kind = kind;
  info.id = raw->id;
  info.name = raw->name;
  info.version = raw->version;
  info.summary = raw->summary;
  info.abi_major = entry.abi_major;
  info.abi_minor = entry.abi_minor;
  info.state_version = raw->state_version;
  info.options = Json::parse(raw->options_json, nullptr, /*allow_exceptions=*/false);
  info.study = Json::object();
  if (DSAT_HAS(raw, dsat_descriptor, study_json) && raw->study_json != nullptr) {
    info.study = Json::parse(raw->study_json, nullptr, /*allow_exceptions=*/false);
  }
  const std::string problem = problem_of(info);
  if (!problem.empty()) throw bad_plugin(file, fmt::format("{}: {} (plugin defect)", info.id, problem));
  return info;
}

}  // namespace

std::shared_ptr<const PluginLibrary> PluginLibrary::load(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) throw bad_plugin(file, "no such file");
  if (!fs::is_regular_file(file, error)) throw bad_plugin(file, "not a file");
  const std::shared_ptr<boost::dll::shared_library> library = open(fs::absolute(file));
  if (!library->has(kEntrySymbol)) {
    throw bad_plugin(file, fmt::format("exports no {}: it is not a dsat plugin", kEntrySymbol));
  }
  const auto& entry = library->get<const dsat_plugin_entry>(kEntrySymbol);
  check_entry(file, entry);
  return std::shared_ptr<const PluginLibrary>(new PluginLibrary(file, library, entry));
}

const dsat_factory* PluginLibrary::factory(PluginKind kind) const {
  const char* id = kind == PluginKind::searcher ? DSAT_SEARCHER_FACTORY : DSAT_PROFILER_FACTORY;
  return static_cast<const dsat_factory*>(entry_.get_factory(id));
}

std::vector<PluginInfo> PluginLibrary::describe() const {
  std::vector<PluginInfo> found;
  for (const PluginKind kind : {PluginKind::searcher, PluginKind::profiler}) {
    const dsat_factory* maker = factory(kind);
    if (maker == nullptr) continue;
    if (!DSAT_HAS(maker, dsat_factory, create) || maker->descriptor == nullptr || maker->create == nullptr) {
      throw bad_plugin(file_, "a factory is incomplete (plugin defect)");
    }
    if (maker->count > kMostStrategies) {
      throw bad_plugin(file_, fmt::format("a factory offers {} strategies (plugin defect)", maker->count));
    }
    for (uint32_t i = 0; i < maker->count; ++i) {
      found.push_back(describe_one(file_, kind, entry_, maker->descriptor(i)));
      found.back().library = shared_from_this();
    }
  }
  if (found.empty()) throw bad_plugin(file_, "offers neither a searcher nor a profiler");
  return found;
}

}  // namespace dsat::host
