#include "sim/trace.h"

#include <cstdarg>

#include "sim/frame_text.h"

namespace cluster::sim {

bool Trace::open(const std::string& path) {
  file_.reset(std::fopen(path.c_str(), "w"));
  return on();
}

void Trace::line(const char* format, ...) {
  if (!on()) return;
  std::fprintf(file_.get(), "%16.3f us  ",
               static_cast<double>(timetable_.now().time_since_epoch().count()) / 1e3);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(file_.get(), format, arguments);
  va_end(arguments);
  std::fputc('\n', file_.get());
}

void Trace::frame(const char* fate, std::uint32_t from, std::uint32_t to, ConstBytes bytes) {
  if (on()) line("%-9s %u > %u  %s", fate, from, to, text_of_frame(bytes).c_str());
}

}  // namespace cluster::sim
