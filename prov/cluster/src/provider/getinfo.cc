#include "provider/getinfo.h"

#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "api/auth_key.h"
#include "api/domain.h"
#include "api/fabric.h"
#include "api/fid_object.h"
#include "api/sockaddr_io.h"
#include "os/card_reader.h"
#include "os/udp_link.h"
#include "provider/capabilities.h"
#include "provider/info_compat.h"
#include "provider/nic.h"

namespace cluster::provider {
namespace {

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoPointer = std::unique_ptr<fi_info, FreeInfo>;

/// Returns the name of an open object to which the hints refer, or an empty text if they refer to none.
template <typename Object>
std::string opened_name(const typename Object::Handle* handle) {
  return handle == nullptr ? "" : *Object::name_of(*handle);
}

/// Returns false if the hints refer to an object that another provider has opened.
bool opened_here(const fi_info& hints) {
  const fid_domain* const domain = api::attributes_at(hints.domain_attr).domain;
  const fid_fabric* const fabric = api::attributes_at(hints.fabric_attr).fabric;
  return (domain == nullptr || api::Domain::name_of(*domain) != nullptr) &&
         (fabric == nullptr || api::Fabric::name_of(*fabric) != nullptr);
}

AddressFilter filter_for(const Addresses& addresses, const fi_info* hints, const Options& options) {
  const fi_info& asked = api::attributes_at(hints);
  return {.interface = options.text(Options::Name::iface),
          .domain = api::text_or_empty(api::attributes_at(asked.domain_attr).name),
          .fabric = api::text_or_empty(api::attributes_at(asked.fabric_attr).name),
          .opened_domain = opened_name<api::Domain>(api::attributes_at(asked.domain_attr).domain),
          .opened_fabric = opened_name<api::Fabric>(api::attributes_at(asked.fabric_attr).fabric),
          .family = addresses.family,
          .source = addresses.source,
          .routed = {}};
}

/// Copies the address into memory that fi_freeinfo frees. Returns false if there is no memory.
bool copy_address(const SocketAddress& address, void*& target, std::size_t& size) {
  sockaddr_storage storage;
  size = address.to(storage);
  target = std::malloc(size);
  if (target == nullptr) return false;
  std::memcpy(target, &storage, size);
  return true;
}

bool set_addresses(fi_info& info, const InterfaceAddress& place, const Addresses& addresses) {
  info.addr_format = api::format_of_family(place.address.family());
  if (!copy_address(place.address.with_port(addresses.port), info.src_addr, info.src_addrlen)) return false;
  if (!addresses.destination.empty() &&
      !copy_address(addresses.destination, info.dest_addr, info.dest_addrlen)) {
    return false;
  }
  info.domain_attr->name = strdup(place.interface.name.c_str());
  info.fabric_attr->name = strdup(place.network.c_str());
  return info.domain_attr->name != nullptr && info.fabric_attr->name != nullptr;
}

/// Copies the application's key into the answer. Callers before API version 1.5 have no key. Returns false if
/// there is no memory.
template <typename Attributes>
bool copy_auth_key(const Attributes* hint, std::uint32_t version, Attributes& attributes) {
  const api::AuthKey key = api::AuthKey(api::GivenAuthKey(api::attributes_at(hint), version));
  if (key.empty()) return true;
  attributes.auth_key = static_cast<std::uint8_t*>(std::malloc(key.bytes().size()));
  if (attributes.auth_key == nullptr) return false;
  attributes.auth_key_size = key.bytes().size();
  std::memcpy(attributes.auth_key, key.bytes().data(), key.bytes().size());
  return true;
}

/// Returns true if the endpoints of this caller will seal their frames. hint_mismatch() must have accepted
/// the hints, so any key in them is allowed.
bool seals(const Options& options, const fi_info& hints, std::uint32_t version) {
  return !options.text(Options::Name::key_file).empty() || options.from_user(Options::Name::key) ||
         api::GivenAuthKey(api::attributes_at(hints.ep_attr), version).size != 0 ||
         api::GivenAuthKey(api::attributes_at(hints.domain_attr), version).size != 0;
}

/// Returns the capabilities of each endpoint type that satisfies the hints, FI_EP_RDM first. Sets `reason` to
/// the mismatch of the type that the hints name, or otherwise to the first mismatch.
std::vector<Capabilities> matching_capabilities(const fi_info* hints, const GetinfoCaller& caller,
                                                std::size_t frame_max, std::string& reason) {
  std::vector<Capabilities> found;
  for (const Capabilities& kind : {kRdmCapabilities, kMsgCapabilities, kDgramCapabilities}) {
    const Capabilities capabilities = limit_to_frame(kind, frame_max);
    std::string mismatch = hints == nullptr ? std::string() : hint_mismatch(*hints, capabilities, caller);
    if (mismatch.empty()) {
      found.push_back(capabilities);
    } else if (reason.empty() || (hints->ep_attr != nullptr && hints->ep_attr->type == capabilities.type)) {
      reason = std::move(mismatch);
    }
  }
  return found;
}

}  // namespace

/// Returns the interface address for the answer. If none fits, logs one line and returns null.
const InterfaceAddress* GetInfo::find_address(std::span<const InterfaceAddress> places, int listing_error,
                                              const fi_info* hints, const Addresses& addresses) {
  AddressFilter filter = filter_for(addresses, hints, options_);
  if (!addresses.destination.empty() && !places.empty()) {
    filter.routed = os::source_for(addresses.destination).value_or(SocketAddress{});
    if (filter.routed.empty()) {
      log_.info("this provider is not offered: no route to %s", addresses.destination.text().c_str());
      return nullptr;
    }
  }
  const InterfaceAddress* place = choose_address(places, filter);
  if (place != nullptr) return place;
  const std::string reason = no_address_reason(filter, places, listing_error);
  AddressFilter plain;
  plain.interface = filter.interface;
  // If a caller without hints would get no interface either, the cause is the configuration of the node and
  // not these hints.
  const bool concerns_all = choose_address(places, plain) == nullptr;
  if (concerns_all && !warned_.exchange(true)) {
    log_.warn("this provider offers nothing: %s", reason.c_str());
  } else {
    log_.info("this provider is not offered: %s", reason.c_str());
  }
  return nullptr;
}

int GetInfo::get(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
                 const fi_info* hints, fi_info** list) {
  *list = nullptr;
  // With this flag the caller is a layered provider (ofi_rxm, ofi_rxd) that looks for a provider to build on.
  // The caller gets nothing, because this provider itself has all that ofi_rxm and ofi_rxd add. If they built
  // on this provider, libfabric would list their answers before this provider's own answers.
  if ((flags & kCoreProviderOnly) != 0 && !options_.boolean(Options::Name::test_layers)) return -FI_ENODATA;
  const fi_info& asked = api::attributes_at(hints);
  std::string reason = "the fabric or domain in the hints belongs to another provider";
  const auto refuse = [&](int error) {
    log_.info("this provider is not offered: %s", reason.c_str());
    return error;
  };
  if (!opened_here(asked)) return refuse(-FI_ENODATA);
  reason.clear();
  const GetinfoCaller caller{version, core_version_, options_.settings().tx_requests_max, provider_version_};
  if (matching_capabilities(hints, caller, wire::kFrameMax, reason).empty()) return refuse(-FI_ENODATA);
  Addresses addresses;
  if (const int error = read_addresses(node, service, flags, hints, addresses, reason)) return refuse(error);
  int listing_error = 0;
  const std::vector<InterfaceAddress> places = list_interface_addresses(addresses.source, listing_error);
  const InterfaceAddress* place = find_address(places, listing_error, hints, addresses);
  if (place == nullptr) return listing_error != 0 ? -listing_error : -FI_ENODATA;
  const std::size_t seal = seals(options_, asked, version) ? sizeof(wire::SealTrailer) : 0;
  const std::size_t frame_max = os::frame_max_within(place->interface.mtu, place->address.family()) - seal;
  const link::NetworkCard card = os::read_network_card(place->interface.name);
  InfoPointer first;
  std::vector<Capabilities> all = matching_capabilities(hints, caller, frame_max, reason);
  std::ranges::reverse(all);  // the loop inserts each entry at the front of the list
  for (const Capabilities& capabilities : all) {
    InfoPointer info(fi_allocinfo());
    if (info == nullptr) return -FI_ENOMEM;
    describe(*info, capabilities, version, hints, core_version_);
    if (!set_addresses(*info, *place, addresses) || !copy_auth_key(asked.ep_attr, version, *info->ep_attr) ||
        !copy_auth_key(asked.domain_attr, version, *info->domain_attr)) {
      return -FI_ENOMEM;
    }
    info->nic = make_nic(place->interface, card);
    info->next = first.release();
    first = std::move(info);
  }
  if (first == nullptr) return refuse(-FI_ENODATA);
  log_.info("this provider is offered on %s %s (%s)", place->interface.name.c_str(),
            place->address.ip_text().c_str(), place->reason.c_str());
  *list = first.release();
  return 0;
}

}  // namespace cluster::provider
