#include "provider/nic.h"

#include <rdma/fi_errno.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "api/fid_object.h"

namespace cluster::provider {
namespace {

// libfabric's core and its utility providers (ofi_rxm) copy the object member by member, including the ops
// table. So close_nic() also frees copies that other code has made. Therefore each attribute and each text
// has memory of its own from malloc, and no function here uses data that only this provider's objects have.

struct CloseNic {
  void operator()(fid_nic* nic) const {
    if (fi_device_attr* const device = nic->device_attr) {
      for (char* text : {device->name, device->device_id, device->device_version, device->vendor_id,
                         device->driver, device->firmware}) {
        std::free(text);
      }
    }
    if (fi_link_attr* const link = nic->link_attr) {
      std::free(link->address);
      std::free(link->network_type);
    }
    std::free(nic->device_attr);
    std::free(nic->bus_attr);
    std::free(nic->link_attr);
    std::free(nic);
  }
};

using NicPointer = std::unique_ptr<fid_nic, CloseNic>;

template <typename T>
T* allocate() {
  void* const memory = std::calloc(1, sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<T*>(memory);
}

/// Returns a copy of the text. Unknown texts are null, as fi_nic(3) requires.
char* copy_of(const char* text) {
  if (text == nullptr || *text == '\0') return nullptr;
  char* const copy = strdup(text);
  if (copy == nullptr) throw std::bad_alloc();
  return copy;
}

NicPointer copy_of(const fid_nic& other) {
  NicPointer nic(allocate<fid_nic>());
  nic->fid = other.fid;
  nic->device_attr = allocate<fi_device_attr>();
  nic->bus_attr = allocate<fi_bus_attr>();
  nic->link_attr = allocate<fi_link_attr>();
  const fi_device_attr& device = *other.device_attr;
  nic->device_attr->name = copy_of(device.name);
  nic->device_attr->device_id = copy_of(device.device_id);
  nic->device_attr->device_version = copy_of(device.device_version);
  nic->device_attr->vendor_id = copy_of(device.vendor_id);
  nic->device_attr->driver = copy_of(device.driver);
  nic->device_attr->firmware = copy_of(device.firmware);
  nic->link_attr->mtu = other.link_attr->mtu;
  nic->link_attr->speed = other.link_attr->speed;
  nic->link_attr->state = other.link_attr->state;
  nic->link_attr->address = copy_of(other.link_attr->address);
  nic->link_attr->network_type = copy_of(other.link_attr->network_type);
  return nic;
}

fid_nic& nic_of(fid* plain) { return *reinterpret_cast<fid_nic*>(plain); }

int close_nic(fid* plain) noexcept {
  CloseNic{}(&nic_of(plain));
  return 0;
}

/// Implements FI_DUP, with which fi_dupinfo copies the object.
int control_nic(fid* plain, int command, void* argument) noexcept {
  if (command != FI_DUP || argument == nullptr) return -FI_ENOSYS;
  return api::guarded([&] {
    *static_cast<fid_nic**>(argument) = copy_of(nic_of(plain)).release();
    return 0;
  });
}

/// Appends a description of the object to `buffer`, in the core's format. fi_tostr calls this function for
/// the fi_info that contains the object.
int print_nic(const fid* plain, char* buffer, std::size_t size) noexcept {
  const fid_nic& nic = *reinterpret_cast<const fid_nic*>(plain);
  const fi_device_attr& device = *nic.device_attr;
  const fi_link_attr& link = *nic.link_attr;
  std::size_t used = strnlen(buffer, size);
  const auto add = [&](const char* format, auto... values) {
    if (used + 1 >= size) return;
    std::snprintf(buffer + used, size - used, format, values...);
    used += strnlen(buffer + used, size - used);
  };
  const auto text = [](const char* known) { return known != nullptr ? known : "(null)"; };
  add("    nic:\n        fi_device_attr:\n%s", "");
  add("            name: %s\n            device_id: %s\n", text(device.name), text(device.device_id));
  add("            device_version: %s\n", text(device.device_version));
  add("            vendor_id: %s\n            driver: %s\n", text(device.vendor_id), text(device.driver));
  add("            firmware: %s\n        fi_bus_attr:\n            bus_type: FI_BUS_UNKNOWN\n",
      text(device.firmware));
  add("        fi_link_attr:\n            address: %s\n            mtu: %zu\n", text(link.address), link.mtu);
  add("            speed: %zu\n            state: %s\n            network_type: %s\n", link.speed,
      link.state == FI_LINK_UP ? "FI_LINK_UP" : "FI_LINK_DOWN", text(link.network_type));
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

}  // namespace

/// The place on the bus stays unknown, because MPICH looks it up in hwloc, and aborts if hwloc does not have
/// it. That happens with the Python wheels of MPICH, whose hwloc finds no devices.
fid_nic* make_nic(link::Interface interface, link::NetworkCard card) {
  constexpr std::size_t kMega = 1'000'000;
  static char ethernet[] = "Ethernet";
  std::string address = text_of_mac(interface);
  fi_device_attr device{.name = interface.name.data(),
                        .device_id = card.device_id.data(),
                        .device_version = card.revision.data(),
                        .vendor_id = card.vendor_id.data(),
                        .driver = card.driver.data(),
                        .firmware = card.firmware.data()};
  fi_link_attr link{};
  link.address = address.data();
  link.mtu = interface.mtu;
  link.speed = interface.speed_mbit > 0 ? static_cast<std::size_t>(interface.speed_mbit) * kMega : 0;
  link.state = interface.running ? FI_LINK_UP : FI_LINK_DOWN;
  link.network_type = interface.has_ethernet ? ethernet : nullptr;
  const fid_nic borrowed{{FI_CLASS_NIC, nullptr, &nic_ops}, &device, nullptr, &link, nullptr};
  return copy_of(borrowed).release();
}

}  // namespace cluster::provider
