#include "os/card_reader.h"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

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

/// Reads a hexadecimal number that ends before `end`, and removes both from the text.
template <typename Number>
bool take_number(std::string_view& text, char end, Number& number) {
  const std::size_t length = std::min(text.find(end), text.size());
  const auto [last, error] = std::from_chars(text.data(), text.data() + length, number, 16);
  if (error != std::errc() || last != text.data() + length) return false;
  text.remove_prefix(std::min(length + 1, text.size()));
  return true;
}

}  // namespace

std::optional<link::PciPlace> parse_pci_place(std::string_view text) {
  link::PciPlace place;
  const bool good = take_number(text, ':', place.domain) && take_number(text, ':', place.bus) &&
                    take_number(text, '.', place.device) && take_number(text, '\0', place.function);
  return good ? std::optional(place) : std::nullopt;
}

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
  const std::string name = text_of(answer.bus_info);
  card.pci = parse_pci_place(name);
  if (card.pci) read_card_ids(bus + "/" + name, card);
  return card;
}

}  // namespace cluster::os
