// A trial of a study's past, as the models learn it.
#ifndef DSAT_PLUGINS_ZERO_MODEL_CHOICE_READ_OBSERVATION_H_
#define DSAT_PLUGINS_ZERO_MODEL_CHOICE_READ_OBSERVATION_H_

#include <optional>
#include <string>

#include "zero_model/choice/surrogate.h"

namespace dsat::guided {

// nullopt: it teaches nothing, having failed or made a single forward pass. Makes the lattice know its arm.
std::optional<Ended> ended_of(const Json& observation, const std::string& metric, Lattice& lattice);

// nullopt unless a positive, finite number.
std::optional<double> positive(std::optional<double> value);

}  // namespace dsat::guided

#endif  // DSAT_PLUGINS_ZERO_MODEL_CHOICE_READ_OBSERVATION_H_
