#include "api/av.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>

#include "api/av_set.h"
#include "api/sockaddr_io.h"
#include "base/enumeration.h"

namespace cluster::api {
namespace {

constexpr std::uint64_t kInsertFlags = FI_MORE | FI_SYNC_ERR | kAuthKeyFlag;

int sync_errors(std::uint64_t flags, void* context, int*& errors) {
  if (flags & ~kInsertFlags) return -FI_EBADFLAGS;
  if ((flags & FI_SYNC_ERR) && context == nullptr) return -FI_EINVAL;
  errors = flags & FI_SYNC_ERR ? static_cast<int*>(context) : nullptr;
  return 0;
}

const char* to_text(fid_av* av, const void* address, char* buffer, std::size_t* size) noexcept {
  if (address == nullptr || size == nullptr) return nullptr;
  const int result = guarded([&] {
    const std::string text =
        to_uri(parse_sockaddr(address, object_of<Av>(av).domain().address_format()).address);
    if (buffer != nullptr && *size > 0) std::snprintf(buffer, *size, "%s", text.c_str());
    *size = text.size() + 1;
    return 0;
  });
  return result == 0 ? buffer : nullptr;
}

constinit fi_ops av_fid_ops = fid_ops({.close = close_object<Av>});

constinit NewAvOps av_ops = {
    .base = {
        .size = sizeof(NewAvOps),
        .insert = Method<&Av::insert>::entry,
        .insertsvc = Method<&Av::insert_service>::entry,
        .insertsym = Method<&Av::insert_symmetric>::entry,
        .remove = Method<&Av::remove>::entry,
        .lookup = Method<&Av::lookup>::entry,
        .straddr = to_text,
        .av_set = open_object<AvSet, Av>,
    },
    .insert_auth_key = Method<&Av::insert_auth_key>::entry,
    .lookup_auth_key = Method<&Av::lookup_auth_key>::entry,
    .set_user_id = kEnosys,
};

/// A name that ends in digits, which fi_av_insertsym counts up: "node007" is "node", 7, 3 digits.
struct Countable {
  std::string base;
  std::uint64_t first = 0;
  std::size_t width = 0;

  explicit Countable(std::string name) : base(std::move(name)) {
    constexpr std::size_t kDigitsMax = 18;
    while (width < base.size() && width < kDigitsMax &&
           std::isdigit(static_cast<unsigned char>(base[base.size() - 1 - width]))) {
      ++width;
    }
    const char* digits = base.data() + base.size() - width;
    std::from_chars(digits, digits + width, first);
    base.resize(base.size() - width);
  }
  std::string name(std::size_t offset) const {
    if (width == 0) return base;
    const std::string digits = std::to_string(first + offset);
    return base + std::string(width > digits.size() ? width - digits.size() : 0, '0') + digits;
  }
};

/// An element of an array that may be null.
template <typename Value>
Value* element(Value* array, std::size_t index) {
  return array != nullptr ? array + index : nullptr;
}

/// True if a peer can have this address: it has host and port. A group is no peer.
bool usable(const SocketAddress& address) {
  return !address.empty() && !address.wildcard() && !address.multicast() && address.port() != 0;
}

}  // namespace

Av::Av(Domain& domain, void* context)
    : fid_av{{FI_CLASS_AV, context, &av_fid_ops}, &av_ops.base}, domain_(domain) {}

Av::~Av() {
  if (domain_->keyed_av() == this) domain_->reset_keyed_av();
}

int Av::open(Domain& domain, fi_av_attr* attributes, fid_av** handle, void* context) {
  if (attributes == nullptr) return -FI_EINVAL;
  if (attributes->name != nullptr) return -FI_ENOSYS;  // shared between processes
  if (attributes->rx_ctx_bits != 0) return -FI_EINVAL;
  if (attributes->flags & ~FI_SYMMETRIC) return -FI_ENOSYS;
  switch (number_of(attributes->type)) {
    case FI_AV_UNSPEC: attributes->type = FI_AV_TABLE; break;
    case FI_AV_MAP:
    case FI_AV_TABLE: break;
    default: return -FI_EINVAL;
  }
  auto av = std::unique_ptr<Av>(new Av(domain, context));
  if (domain.keys_in_av() && !domain.set_keyed_av(*av)) {
    domain.platform().log().warn(
        "no address vector: a domain with FI_AV_AUTH_KEY has one, which holds the keys of all its endpoints and regions");
    return -FI_EBUSY;
  }
  *handle = av.release();
  return 0;
}

/// The flags of all calls that insert addresses, and whether there is a key for each.
int Av::check_insert(fi_addr_t* handles, std::uint64_t flags, void* context, int*& errors) {
  if (const int refusal = sync_errors(flags, context, errors)) return refusal;
  const bool keyed = (flags & kAuthKeyFlag) != 0;
  if (keyed && handles == nullptr) return -FI_EINVAL;
  if (keyed == domain_->keys_in_av()) return 0;
  domain_->platform().log().warn(
      domain_->keys_in_av()
          ? "no address is inserted: in a domain with FI_AV_AUTH_KEY each needs a key (fi_av_insert with FI_AUTH_KEY)"
          : "no address is inserted: FI_AUTH_KEY is for domains that were opened with FI_AV_AUTH_KEY");
  return -FI_EINVAL;
}

/// With keys of the address vector the one of the address is where its handle will be.
bool Av::insert_one(const SocketAddress& plain, fi_addr_t* handle, int* error) {
  const bool keyed = domain_->keys_in_av();
  const std::uint8_t realm = keyed && usable(plain) ? keys_.add_peer(*handle) : 0;
  const bool good = usable(plain) && (!keyed || realm != 0);
  fi_addr_t inserted = FI_ADDR_NOTAVAIL;
  try {
    if (good) inserted = address_table_.insert(plain.in_realm(realm));
  } catch (...) {
    if (realm != 0) keys_.drop_peer(realm);
    throw;
  }
  if (handle != nullptr) *handle = inserted;
  if (error != nullptr) *error = good ? 0 : FI_EINVAL;
  return good;
}

int Av::insert(const void* addresses, std::size_t count, fi_addr_t* handles, std::uint64_t flags,
               void* context) {
  int* errors = nullptr;
  if (const int refusal = check_insert(handles, flags, context, errors)) return refusal;
  if (count > 0 && addresses == nullptr) return -FI_EINVAL;
  const auto* bytes = static_cast<const std::byte*>(addresses);
  address_table_.expect(count);
  int inserted = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const ParsedSockaddr raw = parse_sockaddr(bytes, domain_->address_format());
    bytes += raw.stride;
    inserted += insert_one(raw.address, element(handles, i), element(errors, i));
  }
  return inserted;
}

bool Av::insert_name(const char* node, const char* service, fi_addr_t* handle, int* error) {
  const SocketAddress::Family family = family_of_format(domain_->address_format());
  return insert_one(domain_->platform().resolve(node, service, family), handle, error);
}

int Av::insert_service(const char* node, const char* service, fi_addr_t* handle, std::uint64_t flags,
                       void* context) {
  int* error = nullptr;
  if (const int refusal = check_insert(handle, flags, context, error)) return refusal;
  return node == nullptr ? -FI_EINVAL : insert_name(node, service, handle, error);
}

int Av::insert_symmetric(const char* node, std::size_t nodes, const char* service, std::size_t services,
                         fi_addr_t* handles, std::uint64_t flags, void* context) {
  constexpr auto kCountMax = static_cast<std::size_t>(std::numeric_limits<int>::max());
  int* errors = nullptr;
  if (const int refusal = check_insert(handles, flags, context, errors)) return refusal;
  if (node == nullptr || service == nullptr) return -FI_EINVAL;
  const Countable hosts(node);
  const Countable ports(service);
  if (nodes == 0 || services == 0) return 0;
  if (nodes > kCountMax / services) return -FI_EINVAL;
  if ((nodes > 1 && hosts.width == 0) || (services > 1 && ports.width == 0)) return -FI_EINVAL;
  int inserted = 0;
  std::size_t slot = 0;
  for (std::size_t host = 0; host < nodes; ++host) {
    for (std::size_t port = 0; port < services; ++port, ++slot) {
      inserted += insert_name(hosts.name(host).c_str(), ports.name(port).c_str(), element(handles, slot),
                              element(errors, slot));
    }
  }
  return inserted;
}

int Av::remove(fi_addr_t* handles, std::size_t count, std::uint64_t flags) {
  if (flags != 0 && (flags != kAuthKeyFlag || !domain_->keys_in_av())) return -FI_EBADFLAGS;
  if (count > 0 && handles == nullptr) return -FI_EINVAL;
  if (flags == kAuthKeyFlag) return remove_keys(handles, count);
  bool all = true;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t realm = address_table_.lookup(handles[i]).realm();
    const bool removed = address_table_.remove(handles[i]);
    if (removed && realm != 0) keys_.drop_peer(realm);
    all = removed && all;
  }
  return all ? 0 : -FI_EINVAL;
}

/// The first that cannot be removed ends it.
int Av::remove_keys(fi_addr_t* handles, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const int error = keys_.remove(handles[i]);
    if (error == -FI_EBUSY) {
      domain_->platform().log().warn(
          "an authorization key stays in the address vector: addresses are inserted with it, or endpoints or regions that were "
          "opened with it are not closed");
    }
    if (error != 0) return error;
  }
  return 0;
}

int Av::insert_auth_key(const void* key, std::size_t size, fi_addr_t* handle, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  if (handle == nullptr) return -FI_EINVAL;
  Log& log = domain_->platform().log();
  if (!domain_->keys_in_av()) {
    log.warn("no authorization key in this address vector: its domain was not opened with FI_AV_AUTH_KEY");
    return -FI_EINVAL;
  }
  const int error = keys_.insert(key, size, *handle);
  if (error == -FI_EINVAL) log.warn("an authorization key has 16 to 64 bytes, and that one has %zu", size);
  if (error == -FI_ENOSPC) log.warn("an address vector has at most %zu authorization keys", KeyRing::kKeysMax);
  return error;
}

int Av::lookup_auth_key(fi_addr_t handle, void* key, std::size_t* size) {
  if (size == nullptr || (key == nullptr && *size != 0)) return -FI_EINVAL;
  const std::uint8_t named = keys_.realm_of(handle);
  return keys_.copy(named != 0 ? named : address_table_.lookup(handle).realm(), key, *size) ? 0 : -FI_EINVAL;
}

int Av::lookup(fi_addr_t handle, void* address, std::size_t* size) {
  const SocketAddress found = address_table_.lookup(handle);
  if (size == nullptr || found.empty()) return -FI_EINVAL;
  write_sockaddr(found, address, *size);
  return 0;
}

}  // namespace cluster::api
