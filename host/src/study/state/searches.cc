// Each search is one JSON object. Every member is checked on reading, since a damaged journal may hold anything.
#include "study/state/searches.h"

#include <fmt/format.h>

#include <algorithm>

#include "dsat/config/json_numbers.h"

namespace dsat::host {

Searches::Searches(const std::optional<Json>& stored) : all_(1) {
  if (!stored || stored->is_null()) return;
  try {
    std::vector<Search> all;
    for (const Json& one : *stored) {
      Search search;
      search.first_event = config::whole_number<uint64_t>(one.at("first_event"));
      search.first_trial = config::whole_number<uint64_t>(one.at("first_trial"));
      search.plugin = one.at("plugin").get<std::string>();
      if (const Json& end = one.at("end"); !end.is_null()) {
        search.end = SearchEnd{config::whole_number<uint64_t>(end.at("first_untold")),
                               end.at("reason").get<std::string>(), end.at("of_time").get<bool>()};
      }
      search.counts_from = config::whole_number<uint64_t>(one.at("counts_from"));
      search.mended_at = config::whole_number<uint64_t>(one.value("mended_at", Json(0)));
      all.push_back(std::move(search));
    }
    if (!all.empty()) all_ = std::move(all);
  } catch (const std::exception&) {
    throw Error(DSAT_DATA_LOSS, "its searches are damaged");
  }
}

void Searches::take_over(uint64_t first_event, uint64_t first_trial, const PluginInfo& plugin,
                         const std::string& before) {
  if (all_.back().plugin.empty()) all_.back().plugin = before;
  all_.push_back({first_event, first_trial, fmt::format("{} {}", plugin.id, plugin.version), {}, first_trial, 0});
}

void Searches::go_on(uint64_t next_trial) {
  all_.back().end.reset();
  all_.back().counts_from = next_trial;
}

void Searches::forget_events_from(uint64_t first, uint64_t trials) {
  Search& search = all_.back();
  search.counts_from = std::min(search.counts_from, trials);
  search.mended_at = std::min(search.mended_at, first);
  if (search.end && search.end->first_withheld > first) search.end.reset();
  if (search.first_event <= first) return;
  search.first_event = first;
  search.first_trial = trials;
}

std::vector<std::string> Searches::names() const {
  std::vector<std::string> names;
  for (const Search& search : all_) {
    if (search.plugin.empty()) return {};
    names.push_back(search.plugin);
  }
  return names.size() > 1 ? names : std::vector<std::string>();
}

Json Searches::to_json() const {
  Json list = Json::array();
  for (const Search& search : all_) {
    Json end;
    if (search.end) {
      end = {{"first_untold", search.end->first_withheld},
             {"reason", search.end->reason},
             {"of_time", search.end->of_time}};
    }
    list.push_back({{"first_event", search.first_event},
                    {"first_trial", search.first_trial},
                    {"plugin", search.plugin},
                    {"end", std::move(end)},
                    {"counts_from", search.counts_from},
                    {"mended_at", search.mended_at}});
  }
  return list;
}

}  // namespace dsat::host
