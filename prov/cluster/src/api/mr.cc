// Memory regions (fid_mr). A region that peers may access is an entry in the domain's region table.
// Registration neither pins nor reads memory, so a region may cover the whole address space.
#include <rdma/fi_domain.h>

#include <algorithm>
#include <memory>

#include "api/cntr.h"
#include "api/domain.h"
#include "api/ops_tables.h"

namespace cluster::api {
namespace {

/// A memory region. Its descriptor (fi_mr_desc) is the address of the object.
class Mr : public fid_mr {
 public:
  using Handle = fid_mr;

  static int open(Domain& domain, const fi_mr_attr& attributes, std::uint64_t flags, fid_mr** handle);
  ~Mr();

  int bind(fid_t object, std::uint64_t flags);
  /// Removes the region from the table and waits until no peer accesses it. Returns false if an access of a
  /// peer does not end. In this case the caller may try again.
  bool withdraw();
  /// Returns true if this process is a forked child and the region belongs to its parent.
  bool inherited() const { return domain_->inherited(); }

 private:
  Mr(Domain& domain, void* context) noexcept;
  void bind_counter(Ref<Cntr>& slot, Cntr& cntr);

  Ref<Domain> domain_;
  Ref<Cntr> reads_;
  Ref<Cntr> writes_;
  bool listed_ = false;  ///< the region is in the region table, so peers may access it
  carrier::RegisteredRegion region_;
};

constexpr std::uint64_t kRemoteAccess = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::uint64_t kAccess = FI_SEND | FI_RECV | FI_READ | FI_WRITE | kRemoteAccess;

/// Returns -FI_EBUSY while a peer on this node still accesses the region, because the application must not
/// reuse the memory yet.
int mr_close(fid* plain) noexcept {
  Mr& mr = object_of<Mr>(plain);
  if (mr.inherited()) return 0;
  if (!mr.withdraw()) return -FI_EBUSY;
  delete &mr;
  return 0;
}

/// A region is usable as soon as it is registered. So FI_ENABLE and FI_REFRESH do nothing.
int mr_control(fid*, int command, void*) noexcept {
  return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

constinit fi_ops mr_fid_ops =
    fid_ops({.close = mr_close, .bind = Method<&Mr::bind>::entry, .control = mr_control});

/// Returns a random key of 64 bits, which no peer can guess. Two regions practically never get the same key.
std::uint64_t draw_key(Domain& domain) {
  std::uint64_t key = FI_KEY_NOTAVAIL;
  while (key == FI_KEY_NOTAVAIL) key = domain.platform().random().next();
  return key;
}

/// Returns true if the application has passed either no authorization key or the domain's key. Any other key
/// is refused, because a region has no key of its own. The keys of the domain's endpoints decide which peers
/// can access the region.
bool allows(Domain& domain, const GivenAuthKey& given) {
  return given.size == 0 || (given.refusal() == nullptr &&
                             std::ranges::equal(AuthKey(given).bytes(), domain.auth_key().bytes()));
}

int register_attributes(fid* domain, const fi_mr_attr* attributes, std::uint64_t flags,
                        fid_mr** handle) noexcept {
  if (domain == nullptr || domain->fclass != FI_CLASS_DOMAIN || attributes == nullptr || handle == nullptr) {
    return -FI_EINVAL;
  }
  return guarded([&] { return Mr::open(object_of<Domain>(domain), *attributes, flags, handle); });
}

int register_vector(fid* domain, const iovec* vector, std::size_t count, std::uint64_t access, std::uint64_t,
                    std::uint64_t key, std::uint64_t flags, fid_mr** handle, void* context) noexcept {
  fi_mr_attr attributes{};
  attributes.mr_iov = vector;
  attributes.iov_count = count;
  attributes.access = access;
  attributes.requested_key = key;
  attributes.context = context;
  return register_attributes(domain, &attributes, flags, handle);
}

int register_buffer(fid* domain, const void* buffer, std::size_t size, std::uint64_t access,
                    std::uint64_t offset, std::uint64_t key, std::uint64_t flags, fid_mr** handle,
                    void* context) noexcept {
  const iovec vector{const_cast<void*>(buffer), size};
  return register_vector(domain, &vector, 1, access, offset, key, flags, handle, context);
}

Mr::Mr(Domain& domain, void* context) noexcept
    : fid_mr{{FI_CLASS_MR, context, &mr_fid_ops}, this, FI_KEY_NOTAVAIL}, domain_(domain) {}

Mr::~Mr() {
  domain_->memory()->remove(region_);
  for (const Ref<Cntr>* cntr : {&reads_, &writes_}) {
    if (*cntr) domain_->mr_progress().remove_counter((*cntr)->progress());
  }
}

bool Mr::withdraw() {
  if (listed_ && !domain_->regions().remove(key)) return false;
  listed_ = false;
  return true;
}

int Mr::open(Domain& domain, const fi_mr_attr& attributes, std::uint64_t flags, fid_mr** handle) {
  // The flags are checked first, because unknown flags may change the meaning of the fields. FI_RMA_EVENT
  // needs no preparation.
  if (flags & ~FI_RMA_EVENT) return -FI_EBADFLAGS;
  if (attributes.iov_count != 1 || attributes.mr_iov == nullptr) return -FI_EINVAL;
  if (attributes.access & ~kAccess) return -FI_EINVAL;
  if (!allows(domain, {attributes, domain.fabric().api_version})) return -FI_EINVAL;
  auto mr = std::unique_ptr<Mr>(new Mr(domain, attributes.context));
  mr->key = domain.basic_registration() ? draw_key(domain) : attributes.requested_key;
  const iovec& memory = attributes.mr_iov[0];
  carrier::RegisteredRegion& region = mr->region_;
  region = {.handle = mr->mem_desc,
            .base = static_cast<std::byte*>(memory.iov_base),
            .length = memory.iov_len,
            .key = mr->key,
            .start = domain.basic_registration() ? reinterpret_cast<std::uintptr_t>(memory.iov_base) : 0,
            .filled_here = (attributes.access & (FI_RECV | FI_READ)) != 0,
            .readable = (attributes.access & FI_REMOTE_READ) != 0,
            .writable = (attributes.access & FI_REMOTE_WRITE) != 0};
  // A region without remote access needs no entry in the table, and may have any key.
  if (attributes.access & kRemoteAccess) {
    const protocol::MemoryRegion shown{.base = region.base,
                                       .start = region.start,
                                       .length = region.length,
                                       .readable = region.readable,
                                       .writable = region.writable,
                                       .drawn_key = domain.basic_registration()};
    if (!domain.regions().add(mr->key, shown)) return -FI_ENOKEY;
    mr->listed_ = true;
  }
  domain.memory()->add(region);  // cannot fail
  *handle = mr.release();
  return 0;
}

void Mr::bind_counter(Ref<Cntr>& slot, Cntr& cntr) {
  domain_->mr_progress().add_counter(cntr.progress());
  if (slot) domain_->mr_progress().remove_counter(slot->progress());
  slot.set(cntr);
}

/// A bound counter counts accesses by peers. Binding an endpoint has no effect. If this region is not in the
/// table, the table does not get the counter: another region in the table may have the same key, and peers
/// cannot access this region.
int Mr::bind(fid_t object, std::uint64_t flags) {
  if (object == nullptr) return -FI_EINVAL;
  if (object->fclass == FI_CLASS_EP) return 0;
  if (object->fclass != FI_CLASS_CNTR || (flags & ~kRemoteAccess)) return -FI_EINVAL;
  Cntr& cntr = object_of<Cntr>(object);
  if (flags & FI_REMOTE_READ) bind_counter(reads_, cntr);
  if (flags & FI_REMOTE_WRITE) bind_counter(writes_, cntr);
  if (!listed_) return 0;
  domain_->regions().count(key, (flags & FI_REMOTE_READ) ? &cntr.counter() : nullptr,
                           (flags & FI_REMOTE_WRITE) ? &cntr.counter() : nullptr);
  return 0;
}

}  // namespace

constinit fi_ops_mr mr_ops = {
    .size = sizeof(fi_ops_mr),
    .reg = register_buffer,
    .regv = register_vector,
    .regattr = register_attributes,
};

}  // namespace cluster::api
