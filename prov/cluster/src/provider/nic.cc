#include "provider/nic.h"

#include <rdma/fi_errno.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "api/fid_object.h"

namespace cluster::provider {
namespace {

/// The fields of fid_nic point into the object itself. Unknown texts are null, as fi_nic(3) demands. The
/// place on the bus stays unknown: MPICH looks it up in hwloc and aborts if hwloc does not have it, as in the
/// wheels of MPICH, which find no devices.
class Nic : public fid_nic {
 public:
  using Handle = fid_nic;

  Nic(const link::Interface& interface, const link::NetworkCard& card);
  Nic(const Nic& other);
  Nic& operator=(const Nic&) = delete;

  /// Implements fi_tostr for the answer of which this object is a part: appends its text, in the core's form.
  void append_to(char* buffer, std::size_t size) const;

 private:
  void point_to_texts();

  std::string name_;
  std::string address_;
  link::NetworkCard card_;
  bool ethernet_;
  fi_device_attr device_{};
  fi_bus_attr bus_{};
  fi_link_attr link_{};
};

int close_nic(fid* plain) noexcept {
  delete &api::object_of<Nic>(plain);
  return 0;
}

/// Implements FI_DUP, by which fi_dupinfo copies the object.
int control_nic(fid* plain, int command, void* argument) noexcept {
  if (command != FI_DUP || argument == nullptr) return -FI_ENOSYS;
  return api::guarded([&] {
    *static_cast<fid_nic**>(argument) = new Nic(api::object_of<Nic>(plain));
    return 0;
  });
}

int print_nic(const fid* plain, char* buffer, std::size_t size) noexcept {
  static_cast<const Nic&>(*reinterpret_cast<const fid_nic*>(plain)).append_to(buffer, size);
  return 0;
}

constinit fi_ops nic_ops = [] {
  fi_ops ops = api::fid_ops({.close = close_nic, .control = control_nic});
  ops.tostr = print_nic;
  return ops;
}();

std::string text_of_mac(const link::Interface& interface) {
  if (!interface.has_ethernet) return {};
  char text[18];
  const auto& mac = interface.mac;
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(mac[i]); };
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", byte(0), byte(1), byte(2), byte(3),
                byte(4), byte(5));
  return text;
}

char* text_or_null(std::string& text) { return text.empty() ? nullptr : text.data(); }

Nic::Nic(const link::Interface& interface, const link::NetworkCard& card)
    : fid_nic{{FI_CLASS_NIC, nullptr, &nic_ops}, nullptr, nullptr, nullptr, nullptr},
      name_(interface.name),
      address_(text_of_mac(interface)),
      card_(card),
      ethernet_(interface.has_ethernet) {
  constexpr std::size_t kMega = 1'000'000;
  link_.mtu = interface.mtu;
  link_.speed = interface.speed_mbit > 0 ? static_cast<std::size_t>(interface.speed_mbit) * kMega : 0;
  link_.state = interface.running ? FI_LINK_UP : FI_LINK_DOWN;
  point_to_texts();
}

Nic::Nic(const Nic& other)
    : fid_nic(other),
      name_(other.name_),
      address_(other.address_),
      card_(other.card_),
      ethernet_(other.ethernet_),
      link_(other.link_) {
  point_to_texts();
}

void Nic::point_to_texts() {
  static char ethernet[] = "Ethernet";
  device_ = {.name = text_or_null(name_),
             .device_id = text_or_null(card_.device_id),
             .device_version = text_or_null(card_.revision),
             .vendor_id = text_or_null(card_.vendor_id),
             .driver = text_or_null(card_.driver),
             .firmware = text_or_null(card_.firmware)};
  link_.address = text_or_null(address_);
  link_.network_type = ethernet_ ? ethernet : nullptr;
  device_attr = &device_;
  bus_attr = &bus_;
  link_attr = &link_;
}

void Nic::append_to(char* buffer, std::size_t size) const {
  std::size_t used = strnlen(buffer, size);
  const auto add = [&](const char* format, auto... values) {
    if (used + 1 >= size) return;
    std::snprintf(buffer + used, size - used, format, values...);
    used += strnlen(buffer + used, size - used);
  };
  const auto text = [](const char* known) { return known != nullptr ? known : "(null)"; };
  add("    nic:\n        fi_device_attr:\n%s", "");
  add("            name: %s\n            device_id: %s\n", text(device_.name), text(device_.device_id));
  add("            device_version: %s\n", text(device_.device_version));
  add("            vendor_id: %s\n            driver: %s\n", text(device_.vendor_id), text(device_.driver));
  add("            firmware: %s\n        fi_bus_attr:\n            bus_type: FI_BUS_UNKNOWN\n",
      text(device_.firmware));
  add("        fi_link_attr:\n            address: %s\n            mtu: %zu\n", text(link_.address),
      link_.mtu);
  add("            speed: %zu\n            state: %s\n            network_type: %s\n", link_.speed,
      link_.state == FI_LINK_UP ? "FI_LINK_UP" : "FI_LINK_DOWN", text(link_.network_type));
}

}  // namespace

fid_nic* make_nic(const link::Interface& interface, const link::NetworkCard& card) {
  return new Nic(interface, card);
}

}  // namespace cluster::provider
