#include "sim/trace.h"

#include <cstdarg>

#include "sim/frame_text.h"
#include "sim/sim_network.h"

namespace cluster::sim {

bool Trace::open(const std::string& path) {
  file_.reset(std::fopen(path.c_str(), "w"));
  return on();
}

void Trace::line(const char* format, ...) {
  if (!on()) return;
  std::fprintf(file_.get(), "%16.3f us  ",
               static_cast<double>(event_queue_.now().time_since_epoch().count()) / 1e3);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(file_.get(), format, arguments);
  va_end(arguments);
  std::fputc('\n', file_.get());
}

void Trace::frame(const char* fate, const Packet& packet) {
  if (!on()) return;
  const std::string by = packet.rail == 0 ? "" : "by rail " + std::to_string(packet.rail) + ": ";
  line("%-9s %u > %u  %s%s", fate, packet.from, packet.to, by.c_str(), text_of_frame(packet.bytes).c_str());
}

}  // namespace cluster::sim
