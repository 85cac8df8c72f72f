#include "api/av.h"

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

constexpr std::uint64_t kInsertFlags = FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID;

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

/// fi_ops_av with the functions that libfabric 1.20 appended to it. The provider is compiled with the headers
/// of 1.17, which do not declare them.
struct NewerAvOps {
  fi_ops_av first;
  int (*insert_auth_key)(fid_av*, const void*, std::size_t, fi_addr_t*, std::uint64_t);
  int (*lookup_auth_key)(fid_av*, fi_addr_t, void*, std::size_t*);
  int (*set_user_id)(fid_av*, fi_addr_t, fi_addr_t, std::uint64_t);
};
static_assert(sizeof(fi_ops_av) == 64 && sizeof(NewerAvOps) == 88);

constinit NewerAvOps av_ops = {
    .first = {.size = sizeof(NewerAvOps),
              .insert = Method<&Av::insert>::entry,
              .insertsvc = Method<&Av::insert_service>::entry,
              .insertsym = Method<&Av::insert_symmetric>::entry,
              .remove = Method<&Av::remove>::entry,
              .lookup = Method<&Av::lookup>::entry,
              .straddr = to_text,
              .av_set = open_object<AvSet, Av>},
    .insert_auth_key = kEnosys,
    .lookup_auth_key = kEnosys,
    .set_user_id = Method<&Av::set_user_id>::entry,
};

/// A name, divided into its base, the number at its end, and the count of that number's digits. For example,
/// "node007" becomes "node", 7 and 3. A name that does not end in a digit has the count 0. fi_av_insertsym
/// increases the number by one from each name to the next.
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

/// Returns a pointer to the element of an array, or null if the array is null.
template <typename Value>
Value* element(Value* array, std::size_t index) {
  return array != nullptr ? array + index : nullptr;
}

/// Returns true if a peer can have this address: it must have a host and a port, and must not be a multicast
/// address.
bool usable(const SocketAddress& address) {
  return !address.empty() && !address.wildcard() && !address.multicast() && address.port() != 0;
}

}  // namespace

Av::Av(Domain& domain, bool has_user_ids, void* context)
    : fid_av{{FI_CLASS_AV, context, &av_fid_ops}, &av_ops.first},
      has_user_ids_(has_user_ids),
      domain_(domain) {
  if (has_user_ids) address_table_.require_user_ids();
}

int Av::open(Domain& domain, fi_av_attr* attributes, fid_av** handle, void* context) {
  if (attributes == nullptr) return -FI_EINVAL;
  // A name means that processes share the address vector. The provider does not support this.
  if (attributes->name != nullptr) return -FI_ENOSYS;
  if (attributes->rx_ctx_bits != 0) return -FI_EINVAL;
  if (attributes->flags & ~(FI_SYMMETRIC | FI_AV_USER_ID)) return -FI_ENOSYS;
  switch (number_of(attributes->type)) {
    case FI_AV_UNSPEC: attributes->type = FI_AV_TABLE; break;
    case FI_AV_MAP:
    case FI_AV_TABLE: break;
    default: return -FI_EINVAL;
  }
  *handle = new Av(domain, attributes->flags & FI_AV_USER_ID, context);
  return 0;
}

/// Checks the arguments that all insertions have. Sets `errors` to the array for FI_SYNC_ERR, or to null.
/// With the flag FI_AV_USER_ID, `handles` contains the user identifiers on input.
int Av::check_insert(std::uint64_t flags, const fi_addr_t* handles, void* context, int*& errors) const {
  if (flags & ~kInsertFlags) return -FI_EBADFLAGS;
  if ((flags & FI_AV_USER_ID) && (has_user_ids_ || handles == nullptr)) return -FI_EINVAL;
  if ((flags & FI_SYNC_ERR) && context == nullptr) return -FI_EINVAL;
  errors = flags & FI_SYNC_ERR ? static_cast<int*>(context) : nullptr;
  return 0;
}

bool Av::insert_one(const SocketAddress& address, std::uint64_t flags, fi_addr_t* handle, int* error) {
  const bool good = usable(address);
  const fi_addr_t inserted = good ? address_table_.insert(address) : FI_ADDR_NOTAVAIL;
  if (good && (flags & FI_AV_USER_ID)) address_table_.set_user_id(inserted, *handle);
  if (handle != nullptr) *handle = inserted;
  if (error != nullptr) *error = good ? 0 : FI_EINVAL;
  return good;
}

int Av::insert(const void* addresses, std::size_t count, fi_addr_t* handles, std::uint64_t flags,
               void* context) {
  int* errors = nullptr;
  if (const int refusal = check_insert(flags, handles, context, errors)) return refusal;
  if (count > 0 && addresses == nullptr) return -FI_EINVAL;
  const auto* bytes = static_cast<const std::byte*>(addresses);
  address_table_.expect(count);
  int inserted = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const ParsedSockaddr raw = parse_sockaddr(bytes, domain_->address_format());
    bytes += raw.stride;
    inserted += insert_one(raw.address, flags, element(handles, i), element(errors, i));
  }
  return inserted;
}

bool Av::insert_name(const char* node, const char* service, std::uint64_t flags, fi_addr_t* handle,
                     int* error) {
  const SocketAddress::Family family = family_of_format(domain_->address_format());
  return insert_one(domain_->platform().resolve(node, service, family), flags, handle, error);
}

int Av::insert_service(const char* node, const char* service, fi_addr_t* handle, std::uint64_t flags,
                       void* context) {
  int* error = nullptr;
  if (const int refusal = check_insert(flags, handle, context, error)) return refusal;
  return node == nullptr ? -FI_EINVAL : insert_name(node, service, flags, handle, error);
}

int Av::insert_symmetric(const char* node, std::size_t nodes, const char* service, std::size_t services,
                         fi_addr_t* handles, std::uint64_t flags, void* context) {
  constexpr auto kCountMax = static_cast<std::size_t>(std::numeric_limits<int>::max());
  int* errors = nullptr;
  if (const int refusal = check_insert(flags, handles, context, errors)) return refusal;
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
      inserted += insert_name(hosts.name(host).c_str(), ports.name(port).c_str(), flags,
                              element(handles, slot), element(errors, slot));
    }
  }
  return inserted;
}

int Av::remove(fi_addr_t* handles, std::size_t count, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  if (count > 0 && handles == nullptr) return -FI_EINVAL;
  bool all = true;
  for (std::size_t i = 0; i < count; ++i) all = address_table_.remove(handles[i]) && all;
  return all ? 0 : -FI_EINVAL;
}

int Av::lookup(fi_addr_t handle, void* address, std::size_t* size) {
  const SocketAddress found = address_table_.lookup(handle);
  if (size == nullptr || found.empty()) return -FI_EINVAL;
  write_sockaddr(found, address, *size);
  return 0;
}

int Av::set_user_id(fi_addr_t handle, fi_addr_t id, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  return has_user_ids_ && address_table_.set_user_id(handle, id) ? 0 : -FI_EINVAL;
}

}  // namespace cluster::api
