#include "os/card_reader.h"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "os/descriptor.h"
#include "os/ethtool.h"

namespace cluster::os {
namespace {

/// Returns the content of a file of one line. Returns an empty text if the file cannot be read.
std::string read_line(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t length = file ? ::read(file.number(), text, sizeof text) : 0;
  if (length <= 0) return {};
  const std::string_view line(text, static_cast<std::size_t>(length));
  return std::string(line.substr(0, line.find_first_of(std::string_view("\n\0", 2))));
}

template <std::size_t size>
std::string text_of(const char (&text)[size]) {
  return {text, std::find(text, text + size, '\0')};
}

}  // namespace

void read_card_ids(const std::string& folder, link::NetworkCard& card) {
  card.vendor_id = read_line(folder + "/vendor");
  card.device_id = read_line(folder + "/device");
  card.revision = read_line(folder + "/revision");
}

link::NetworkCard read_network_card(const std::string& interface, const std::string& bus) {
  link::NetworkCard card;
  ethtool_drvinfo answer{};
  if (!ask_driver(ethtool_socket(), interface, ETHTOOL_GDRVINFO, answer)) return card;
  card.driver = text_of(answer.driver);
  card.firmware = text_of(answer.fw_version);
  if (card.firmware == "N/A") card.firmware.clear();
  read_card_ids(bus + "/" + text_of(answer.bus_info),
                card);  // there is no such folder if the card is not on the bus
  return card;
}

}  // namespace cluster::os
