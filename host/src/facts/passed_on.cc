// Walks every text of the facts. The journal and the files that train keep theirs whole.
#include "facts/passed_on.h"

#include <string_view>
#include <vector>

#include "dsat/base/secrets.h"

namespace dsat::host {
namespace {

// U+202A to U+202E, U+2066 to U+2069: with them, a command looks like another one.
std::string without_direction_marks(std::string text) {
  for (size_t at = 0; (at = text.find('\xE2', at)) != std::string::npos;) {
    const std::string_view mark = std::string_view(text).substr(at, 3);
    const bool turns = mark.size() == 3 && ((mark[1] == '\x80' && mark[2] >= '\xAA' && mark[2] <= '\xAE') ||
                                            (mark[1] == '\x81' && mark[2] >= '\xA6' && mark[2] <= '\xA9'));
    if (turns) {
      text.erase(at, 3);
    } else {
      ++at;
    }
  }
  return text;
}

void mask_value(std::string_view name, Json& json) {
  if (json.is_structured()) {
    for (Json& inner : json) mask_value(name, inner);
  } else if (json.is_string() && !is_harmless(name, json.get_ref<const std::string&>())) {
    json = kSecretMask;
  }
}

bool is_flag(const Json& json) { return json.is_string() && json.get_ref<const std::string&>().rfind('-', 0) == 0; }

void make_fit(std::vector<std::string>& texts) {
  for (std::string& text : texts) text = passed_on(text);
}

}  // namespace

std::string passed_on(const std::string& text) { return without_direction_marks(mask_secrets(text)); }

void make_fit_to_pass_on(Json& json) {
  if (json.is_string()) {
    json = passed_on(json.get_ref<const std::string&>());
  } else if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      make_fit_to_pass_on(value);
      if (names_secret(key)) mask_value(key, value);
    }
  } else if (json.is_array()) {
    for (size_t i = json.size(); i-- > 0;) {
      make_fit_to_pass_on(json[i]);
      const bool has_flag = i > 0 && is_flag(json[i - 1]) && !is_flag(json[i]);
      if (has_flag && names_secret(json[i - 1].get_ref<const std::string&>())) {
        mask_value(json[i - 1].get_ref<const std::string&>(), json[i]);
      }
    }
  }
}

void make_fit_to_pass_on(StudyFacts& facts) {
  StudyRecord& record = facts.record;
  for (Json* json : {&record.study, &record.profile, &facts.plan}) make_fit_to_pass_on(*json);
  record.reason = passed_on(record.reason);
  make_fit(facts.divergences);
  if (record.best) {
    make_fit_to_pass_on(record.best->config);
    record.best->why = passed_on(record.best->why);
  }
  for (TrialRecord& trial : record.trials) {
    for (Json* json : {&trial.config, &trial.overrides, &trial.metrics}) make_fit_to_pass_on(*json);
    for (std::string* text : {&trial.note, &trial.reason}) *text = passed_on(*text);
  }
  for (TrialFacts& trial : facts.trials) {
    make_fit(trial.warnings);
    make_fit(trial.stderr_tail);
  }
  for (ConfigChange& change : facts.changes) {
    for (Json* json : {&change.own, &change.best}) {
      make_fit_to_pass_on(*json);
      if (names_secret(change.key)) mask_value(change.key, *json);
    }
  }
  for (Knob& knob : facts.knobs) {
    for (KnobValue& value : knob.values) {
      make_fit_to_pass_on(value.value);
      if (names_secret(knob.key)) mask_value(knob.key, value.value);
    }
  }
}

}  // namespace dsat::host
