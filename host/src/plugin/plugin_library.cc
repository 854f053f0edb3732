// Opens a plugin with Boost.DLL and reads its descriptors. Each message says what the plugin's author has to correct.
// Only the library's [load] functions run.
#include "plugin/plugin_library.h"

#include <fmt/format.h>

#include <boost/dll/shared_library.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "base/world_writable.h"
#include "dsat/config/json.h"
#include "plugin/descriptor_check.h"
#include "plugin/plugin_call.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMostStrategies = 1000;
constexpr const char* kEntrySymbol = "dsat_plugin_entry_v1";

Error bad_plugin(const fs::path& file, const std::string& why) {
  return Error(fmt::format("plugin {}: {}", file.string(), why));
}

// Returns the useful part of dlerror's text, which starts with the file's name.
std::string loader_message(const std::exception& error, const fs::path& file) {
  std::string text = error.what();
  const std::string prefix = file.string() + ": ";
  const size_t at = text.rfind(prefix);
  if (at != std::string::npos) text = text.substr(at + prefix.size());
  const size_t suffix = text.find(": Bad file descriptor");  // Boost appends this to every failure
  if (suffix != std::string::npos) text.erase(suffix);
  while (!text.empty() && text.back() == ')' && text.find('(') == std::string::npos) text.pop_back();
  return text;
}

// Boost.DLL's error_code overloads lose dlerror's text, so its exception is caught here.
std::shared_ptr<boost::dll::shared_library> open(const fs::path& file) {
  namespace dll = boost::dll;
  try {
    return std::make_shared<dll::shared_library>(file.string(), dll::load_mode::rtld_now | dll::load_mode::rtld_local);
  } catch (const std::exception& error) {
    const std::string text = loader_message(error, file);
    if (text.find("undefined symbol") != std::string::npos) {
      throw bad_plugin(file, text + "; link the plugin with -Wl,-z,defs to find what is missing");
    }
    // The loader passes over a library of another processor as if it were not there.
    std::error_code ignored;
    const bool is_passed_over = text.find("No such file") != std::string::npos && fs::exists(file, ignored);
    if (is_passed_over || text.find("ELF") != std::string::npos || text.find("file too short") != std::string::npos) {
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

const char* factory_name(PluginKind kind) {
  return kind == PluginKind::searcher ? "searcher factory" : "profiler factory";
}

// Returns "" or why a structure is too short; every version has `member`.
template <class Struct>
std::string why_too_short(const Struct& given, bool reaches, const char* member, const char* type) {
  if (reaches) return "";
  return fmt::format("its struct_size is {}, which ends before {}: set it to sizeof({})", given.struct_size, member,
                     type);
}

// Returns "" or the member that the plugin's author has to set.
std::string missing_in(const dsat_descriptor& raw) {
  const bool reaches = DSAT_HAS(&raw, dsat_descriptor, study_json);
  if (std::string why = why_too_short(raw, reaches, "study_json", "dsat_descriptor"); !why.empty()) return why;
  const std::pair<const char*, const char*> members[] = {{"id", raw.id},
                                                         {"name", raw.name},
                                                         {"version", raw.version},
                                                         {"summary", raw.summary},
                                                         {"options_json", raw.options_json}};
  for (const auto& [name, value] : members) {
    if (value == nullptr) return fmt::format("its {} is NULL", name);
  }
  return "";
}

std::string missing_in(const dsat_factory& maker) {
  const bool reaches = DSAT_HAS(&maker, dsat_factory, create);
  if (std::string why = why_too_short(maker, reaches, "create", "dsat_factory"); !why.empty()) return why;
  if (maker.descriptor == nullptr) return "its descriptor is NULL";
  return maker.create == nullptr ? "its create is NULL" : "";
}

// Returns a descriptor of a factory, checked.
const dsat_descriptor& checked_descriptor(const fs::path& file, PluginKind kind, const dsat_factory& maker,
                                          uint32_t index) {
  const dsat_descriptor* raw = maker.descriptor(index);
  if (raw == nullptr) {
    throw bad_plugin(file, fmt::format("descriptor({}) of the {} is NULL, and its count is {} (plugin defect)", index,
                                       factory_name(kind), maker.count));
  }
  if (const std::string missing = missing_in(*raw); !missing.empty()) {
    throw bad_plugin(file, fmt::format("descriptor({}) of the {} is incomplete: {} (plugin defect)", index,
                                       factory_name(kind), missing));
  }
  return *raw;
}

// Parses JSON text that a plugin's author wrote by hand, so the parser's reason is part of the message.
Json parse_declared(const fs::path& file, const dsat_descriptor& raw, const std::string& member, const char* text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  std::string why = "it has a comment";  // only the parser below accepts comments
  try {
    config::parse(text, member);
  } catch (const Error& error) {
    why = error.what();
    why.erase(0, why.find_first_not_of(": ", member.size()));
  }
  if (*text == '\0') why = "it is empty";
  throw bad_plugin(file, fmt::format("{}: {} is no JSON: {} (plugin defect)", raw.id, member, why));
}

PluginInfo describe_one(const fs::path& file, PluginKind kind, const dsat_plugin_entry& entry,
                        const dsat_descriptor& raw) {
  PluginInfo info;
  info.file = file;
  info.kind = kind;
  info.id = raw.id;
  info.name = raw.name;
  info.version = raw.version;
  info.summary = raw.summary;
  info.abi_major = entry.abi_major;
  info.abi_minor = entry.abi_minor;
  info.state_version = raw.state_version;
  info.options = parse_declared(file, raw, "options_json", raw.options_json);
  info.study = Json::object();
  if (raw.study_json != nullptr) info.study = parse_declared(file, raw, "study_json", raw.study_json);
  const std::string problem = problem_of(info);
  if (!problem.empty()) throw bad_plugin(file, fmt::format("{}: {} (plugin defect)", info.id, problem));
  return info;
}

}  // namespace

std::shared_ptr<const PluginLibrary> PluginLibrary::load(const fs::path& file) {
  const PluginCall announced(file.string(), "load");
  std::error_code error;
  if (!fs::exists(file, error)) throw bad_plugin(file, "no such file");
  if (!fs::is_regular_file(file, error)) throw bad_plugin(file, "not a file");
  if (const std::string why = why_world_writable(file); !why.empty()) throw bad_plugin(file, why);
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
  const PluginCall announced(file_.string(), "describe");
  std::vector<PluginInfo> found;
  for (const PluginKind kind : {PluginKind::searcher, PluginKind::profiler}) {
    const dsat_factory* maker = factory(kind);
    if (maker == nullptr) continue;
    if (const std::string missing = missing_in(*maker); !missing.empty()) {
      throw bad_plugin(file_, fmt::format("the {} is incomplete: {} (plugin defect)", factory_name(kind), missing));
    }
    if (maker->count > kMostStrategies) {
      throw bad_plugin(file_, fmt::format("the {} has the count {}, more than {} (plugin defect)", factory_name(kind),
                                          maker->count, kMostStrategies));
    }
    for (uint32_t i = 0; i < maker->count; ++i) {
      found.push_back(describe_one(file_, kind, entry_, checked_descriptor(file_, kind, *maker, i)));
      found.back().library = shared_from_this();
    }
  }
  if (found.empty()) throw bad_plugin(file_, "offers neither a searcher nor a profiler");
  return found;
}

}  // namespace dsat::host
