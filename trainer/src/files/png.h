// PNG images, as TensorBoard takes them. Source: RFC 2083. Threading: a pure function. Errors: dsat::Error.
#ifndef DSAT_TRAINER_FILES_PNG_H_
#define DSAT_TRAINER_FILES_PNG_H_

#include <cstdint>
#include <string>

namespace dsat::trainer {

// `pixels`: rows from the top, channels innermost; 1 channel is grey, 3 are red, green, blue.
std::string encode_png(const uint8_t* pixels, uint32_t width, uint32_t height, int channels);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_FILES_PNG_H_
