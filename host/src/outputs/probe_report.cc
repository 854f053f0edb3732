// Reads the hook's files. A trial may have replaced them by anything, so names, sizes and numbers are checked.
#include "outputs/probe_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "dsat/base/files.h"
#include "dsat/config/json.h"
#include "dsat/error.h"

namespace dsat::host {

namespace fs = std::filesystem;

namespace {

constexpr int kSchema = 1;
constexpr size_t kMaxFiles = 16384;      // more ranks than any trial has; a file costs about 20 microseconds
constexpr size_t kMaxProbeBytes = 4096;  // ten times what the hook writes
constexpr int kMaxEntries = 100000;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 10 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Recognises rank3.json, and pid4711.json of a process without a rank.
bool is_probe_file(std::string_view name) {
  constexpr std::string_view kSuffix = ".json";
  if (name.size() <= kSuffix.size() || name.substr(name.size() - kSuffix.size()) != kSuffix) return false;
  name.remove_suffix(kSuffix.size());
  for (const std::string_view prefix : {"rank", "pid"}) {
    if (name.substr(0, prefix.size()) == prefix && is_number(name.substr(prefix.size()))) return true;
  }
  return false;
}

// The names are sorted, so that the same folder gives the same report.
std::vector<std::string> probe_files(const fs::path& folder, std::vector<std::string>& warnings) {
  std::vector<std::string> names;
  std::error_code error;
  int entries = 0;
  for (fs::directory_iterator it(folder, error), end; !error && it != end && entries < kMaxEntries;
       it.increment(error), ++entries) {
    std::string name = it->path().filename().string();
    if (is_probe_file(name)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  if (names.size() > kMaxFiles) {
    warnings.push_back(fmt::format("memory probe: {} files, only {} of them were read", names.size(), kMaxFiles));
    names.resize(kMaxFiles);
  }
  return names;
}

const Json& member(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) throw Error(fmt::format("it has no {}", key));
  return *it;
}

// Reads a number of the file; nullopt: null. Throws Error.
std::optional<uint64_t> read_count(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (value.is_null()) return std::nullopt;
  const bool fits = value.is_number_integer() && (value.is_number_unsigned() || value.get<int64_t>() >= 0);
  if (!fits) throw Error(fmt::format("{} is no whole number of at least 0", key));
  constexpr uint64_t kMost = uint64_t{1} << 53;
  const auto number = value.get<uint64_t>();
  if (number > kMost) throw Error(fmt::format("{} is {}", key, number));
  return number;
}

std::string read_version(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (value.is_null()) return "";
  if (!value.is_string() || value.get_ref<const std::string&>().size() > 64) {
    throw Error(fmt::format("{} is no version", key));
  }
  return value.get<std::string>();
}

// Reads an object; nullptr: the file has null. Throws Error.
const Json* read_part(const Json& file, const char* key) {
  const Json& part = member(file, key);
  if (part.is_null()) return nullptr;
  if (!part.is_object()) throw Error(fmt::format("{} is no object", key));
  return &part;
}

std::optional<uint64_t> positive(const std::optional<uint64_t>& value) {
  return value && *value > 0 ? value : std::nullopt;
}

// Throws Error.
std::map<uint64_t, LoadedBatches> read_batches(const Json& file) {
  std::map<uint64_t, LoadedBatches> batches;
  const Json* part = read_part(file, "batches");
  if (part == nullptr) return batches;
  for (const auto& [size, loaded] : part->items()) {
    if (!is_number(size) || !loaded.is_object()) throw Error("batches is no object of sizes");
    batches[std::stoull(size)] = {read_count(loaded, "samples").value_or(0), read_count(loaded, "count").value_or(0)};
  }
  return batches;
}

// Shapes, as the hook writes them.
std::string read_shapes(const Json& engine) {
  const Json& value = member(engine, "inputs");
  constexpr size_t kLongest = 64;
  if (!value.is_string() || value.get_ref<const std::string&>().size() > kLongest) throw Error("inputs are no shapes");
  const auto text = value.get<std::string>();
  if (text.find_first_not_of("0123456789x._") != std::string::npos) throw Error("inputs are no shapes");
  return text;
}

// Hooks of earlier versions write no engines. Throws Error.
std::vector<EngineRun> read_engines(const Json& file) {
  std::vector<EngineRun> engines;
  if (!file.contains("engines")) return engines;
  const Json* part = read_part(file, "engines");
  if (part == nullptr) return engines;
  for (const auto& [index, engine] : part->items()) {
    if (!engine.is_object()) throw Error("engines is no object of engines");
    const auto number = [&, &engine = engine](const char* key) -> std::optional<int64_t> {
      const auto count = read_count(engine, key);
      return count ? std::optional(static_cast<int64_t>(*count)) : std::nullopt;
    };
    engines.push_back({number("micro_batch"), number("accumulation"), number("train_batch"), number("stage"),
                       read_count(engine, "steps").value_or(0), read_shapes(engine)});
  }
  return engines;
}

// Throws Error.
ProbeReport read_rank(const Json& file) {
  if (!file.is_object()) throw Error("it is no JSON object");
  if (read_count(file, "schema") != kSchema) throw Error(fmt::format("its schema is not {}", kSchema));
  ProbeReport rank;
  rank.ranks = 1;
  if (const auto size = positive(read_count(file, "world_size"))) rank.world_size = static_cast<int64_t>(*size);
  rank.torch_version = read_version(file, "torch");
  rank.engine_version = read_version(file, "deepspeed");
  if (file.contains("driver")) rank.driver_version = read_version(file, "driver");
  if (const Json* device = read_part(file, "device")) {
    rank.on_device = true;
    rank.peak_bytes = positive(read_count(*device, "max_allocated_bytes"));
    rank.device_memory_bytes = positive(read_count(*device, "total_bytes"));
    rank.allocator_retries = read_count(*device, "allocator_retries").value_or(0);
  } else if (const Json* process = read_part(file, "process")) {
    rank.peak_bytes = positive(read_count(*process, "peak_bytes"));
    rank.device_memory_bytes = positive(read_count(*process, "limit_bytes"));
  }
  rank.batches = read_batches(file);
  rank.engines = read_engines(file);
  const auto folder = file.find("checkpoint");  // most scripts save none
  if (folder != file.end() && folder->is_string()) rank.checkpoint = folder->get<std::string>();
  return rank;
}

template <class T, class Choose>
void merge(std::optional<T>& whole, const std::optional<T>& part, Choose choose) {
  if (part) whole = whole ? choose(*whole, *part) : *part;
}

void add(const ProbeReport& rank, ProbeReport& all) {
  const auto larger = [](auto a, auto b) { return std::max(a, b); };
  const auto smaller = [](auto a, auto b) { return std::min(a, b); };
  all.ranks += rank.ranks;
  all.on_device = all.on_device || rank.on_device;
  merge(all.world_size, rank.world_size, larger);
  merge(all.peak_bytes, rank.peak_bytes, larger);
  merge(all.device_memory_bytes, rank.device_memory_bytes, smaller);
  all.allocator_retries = std::max(all.allocator_retries, rank.allocator_retries);
  if (all.engine_version.empty()) all.engine_version = rank.engine_version;
  if (all.torch_version.empty()) all.torch_version = rank.torch_version;
  if (all.driver_version.empty()) all.driver_version = rank.driver_version;
  if (all.checkpoint.empty()) all.checkpoint = rank.checkpoint;
  all.engines.insert(all.engines.end(), rank.engines.begin(), rank.engines.end());
  for (const auto& [size, loaded] : rank.batches) {
    LoadedBatches& of_all = all.batches[size];
    of_all = {std::max(of_all.most_samples, loaded.most_samples), std::max(of_all.count, loaded.count)};
  }
}

// Leaves out the memory of processes that do not train.
void keep_memory_of_ranks(std::vector<std::pair<std::string, ProbeReport>>& files) {
  const auto any = [&files](auto&& holds) { return std::any_of(files.begin(), files.end(), holds); };
  const auto is_rank = [](const auto& file) { return file.first.front() == 'r'; };
  const bool any_device = any([](const auto& file) { return file.second.on_device; });
  const bool any_rank = any(is_rank);
  for (auto& file : files) {
    const bool trains = any_device ? file.second.on_device : !any_rank || is_rank(file);
    if (!trains) file.second.peak_bytes = file.second.device_memory_bytes = std::nullopt;
    if (any_rank && !is_rank(file)) file.second.ranks = 0;
  }
}

}  // namespace

ProbeReport parse_probe_file(std::string_view text, const std::string& name) {
  const Json file = config::parse(text, name);
  try {
    return read_rank(file);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", name, error.what()));
  }
}

ProbeReport read_probe(const fs::path& trial_dir) {
  ProbeReport report;
  std::vector<std::pair<std::string, ProbeReport>> files;
  std::vector<std::string> problems;
  for (const std::string& name : probe_files(trial_dir / kProbeFolder, report.warnings)) {
    const FileText text = try_read_file(trial_dir / kProbeFolder / name, kMaxProbeBytes);
    try {
      if (!text.ok()) throw Error(fmt::format("{}: {}", name, text.problem));
      files.emplace_back(name, parse_probe_file(text.bytes, name));
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    }
  }
  keep_memory_of_ranks(files);
  for (const auto& [name, rank] : files) add(rank, report);
  if (!problems.empty()) {
    const std::string more = problems.size() > 1 ? fmt::format(" (and {} more files)", problems.size() - 1) : "";
    report.warnings.push_back(fmt::format("memory probe: left out {}{}", problems.front(), more));
  }
  return report;
}

}  // namespace dsat::host
