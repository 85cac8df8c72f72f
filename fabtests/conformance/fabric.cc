#include "fabric.h"

#include <cstring>

namespace conformance {
namespace {

unsigned char pattern_byte(std::uint64_t seed, std::size_t i) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15u + (i / 8 + 1) * 0xBF58476D1CE4E5B9u;
  x ^= x >> 29;
  x *= 0x94D049BB133111EBu;
  return static_cast<unsigned char>(x >> (8 * (i % 8)));
}

std::size_t entry_size(fi_cq_format format) {
  switch (format) {
    case FI_CQ_FORMAT_CONTEXT: return sizeof(fi_cq_entry);
    case FI_CQ_FORMAT_MSG: return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA: return sizeof(fi_cq_data_entry);
    default: return sizeof(fi_cq_tagged_entry);
  }
}

}  // namespace

fi_progress default_progress() {
  const std::string model = setting("CONFORMANCE_PROGRESS", "");
  if (model == "auto") return FI_PROGRESS_AUTO;
  return model == "manual" ? FI_PROGRESS_MANUAL : FI_PROGRESS_UNSPEC;
}

template <typename Attributes>
static void set_auth_key(const std::string& key, Attributes& attributes) {
  if (key.empty()) return;
  attributes.auth_key = reinterpret_cast<std::uint8_t*>(strdup(key.c_str()));  // freed by fi_freeinfo
  attributes.auth_key_size = key.size();
}

Info make_hints(const Options& options) {
  Info hints(fi_allocinfo());
  hints->caps = options.caps;
  hints->mode = 0;
  hints->addr_format = setting("CONFORMANCE_FAMILY", "4") == "6" ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
  hints->ep_attr->type = options.type;
  hints->domain_attr->av_type = options.av_type;
  hints->domain_attr->threading = options.threading;
  hints->domain_attr->control_progress = hints->domain_attr->data_progress = options.progress;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->mr_mode = options.mr_mode;
  hints->domain_attr->cq_data_size = 8;
  set_auth_key(options.domain_key, *hints->domain_attr);
  set_auth_key(options.endpoint_key, *hints->ep_attr);
  hints->tx_attr->op_flags = options.tx_op_flags;
  hints->rx_attr->op_flags = options.rx_op_flags;
  if (options.type == FI_EP_RDM) {
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS | options.order;
  }
  hints->fabric_attr->prov_name = strdup(provider_under_test().c_str());
  return hints;
}

Info get_info(const Options& options) {
  const std::string node = setting("CONFORMANCE_NODE", "");
  const Info hints = make_hints(options);
  const bool knows_newer = options.newer_caps != 0 && fi_version() >= FI_VERSION(2, 0);
  if (knows_newer) hints->caps |= options.newer_caps;
  fi_info* list = nullptr;
  const char* where = node.empty() ? nullptr : node.c_str();
  const char* service = options.service.empty() ? nullptr : options.service.c_str();
  const std::uint64_t flags = where != nullptr || service != nullptr ? FI_SOURCE : 0;
  const std::uint32_t version = knows_newer ? fi_version() : kApiVersion;
  if (fi_getinfo(version, where, service, flags, hints.get(), &list) != 0) return nullptr;
  if (knows_newer) {
    EXPECT_EQ(list->caps & options.newer_caps, options.newer_caps);
  }
  list->caps |= options.newer_caps;
  return Info(list);
}

Domain::Domain(const Options& options) : options_(options), info_(get_info(options)) {
  if (!info_) {
    ADD_FAILURE() << "no info for these hints: is provider '" << provider_under_test() << "' there?";
    std::fflush(nullptr);
    _exit(1);
  }
  fid_fabric* fabric = nullptr;
  EXPECT_EQ(fi_fabric(info_->fabric_attr, &fabric, nullptr), 0);
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  EXPECT_EQ(fi_domain(fabric, info_.get(), &domain, nullptr), 0);
  domain_.reset(domain);
  fi_av_attr attr{};
  attr.type = options.av_type;
  attr.flags = options.av_flags;
  fid_av* av = nullptr;
  EXPECT_EQ(fi_av_open(domain, &attr, &av, nullptr), 0);
  av_.reset(av);
}

fi_addr_t Domain::insert(const Blob& name) {
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insert(av_.get(), name.data(), 1, &address, 0, nullptr), 1);
  return address;
}

Endpoint::Endpoint(const Options& options)
    : own_domain_(std::make_unique<Domain>(options)), domain_(own_domain_.get()) {
  open(options);
}

Endpoint::Endpoint(Domain& domain) : domain_(&domain) { open(domain.options()); }

Endpoint::Endpoint(Domain& domain, const Options& options) : domain_(&domain) { open(options); }

void Endpoint::open(const Options& options) {
  format_ = options.format;
  fid_domain* domain = domain_->domain();
  fi_cq_attr attr{};
  attr.format = options.format;
  attr.wait_obj = options.wait;
  attr.wait_cond = options.wait_cond;
  attr.wait_set = options.wait_set;
  fid_cq* queues[2] = {};
  for (fid_cq*& queue : queues) EXPECT_EQ(fi_cq_open(domain, &attr, &queue, nullptr), 0);
  tx_.reset(queues[0]);
  rx_.reset(queues[1]);
  fid_ep* ep = nullptr;
  EXPECT_EQ(fi_endpoint(domain, domain_->info(), &ep, nullptr), 0);
  ep_.reset(ep);
  EXPECT_EQ(fi_ep_bind(ep, &domain_->av()->fid, 0), 0);
  const auto bind_shared = [ep](auto* context) {
    if (context == nullptr) return;
    EXPECT_EQ(fi_ep_bind(ep, &context->fid, 0), 0);
  };
  bind_shared(options.shared_rx);
  bind_shared(options.shared_tx);
  EXPECT_EQ(fi_ep_bind(ep, &tx_->fid, FI_TRANSMIT | options.bind_flags), 0);
  EXPECT_EQ(fi_ep_bind(ep, &rx_->fid, FI_RECV | options.bind_flags), 0);
  for (std::uint64_t left = options.counted; left != 0; left &= left - 1) {
    const std::uint64_t kind = left & ~(left - 1);
    fi_cntr_attr counting{};
    counting.wait_obj = options.wait;
    counting.wait_set = options.wait_set;
    fid_cntr* counter = nullptr;
    EXPECT_EQ(fi_cntr_open(domain, &counting, &counter, nullptr), 0);
    EXPECT_EQ(fi_ep_bind(ep, &counter->fid, kind), 0);
    counters_[kind].reset(counter);
  }
  if (options.events || (options.caps & FI_COLLECTIVE)) {
    fi_eq_attr queue{};
    queue.wait_obj = options.wait;
    queue.wait_set = options.wait_set;
    fid_eq* eq = nullptr;
    EXPECT_EQ(fi_eq_open(domain_->fabric(), &queue, &eq, nullptr), 0);
    EXPECT_EQ(fi_ep_bind(ep, &eq->fid, 0), 0);
    eq_.reset(eq);
  }
  EXPECT_EQ(fi_enable(ep), 0);
}

Blob Endpoint::name() const {
  Blob name(256);
  std::size_t size = name.size();
  EXPECT_EQ(fi_getname(&ep_->fid, name.data(), &size), 0);
  name.resize(size);
  return name;
}

void Endpoint::collect(fid_cq* cq) {
  fi_cq_tagged_entry entry{};
  Outcome outcome;
  const ssize_t got = fi_cq_readfrom(cq, &entry, 1, &outcome.source);
  if (got == 1) {
    std::memcpy(&outcome.entry, &entry, entry_size(format_));
    outcomes_.push_back(outcome);
  } else if (got == -FI_EAVAIL) {
    struct {  // as it is since 1.20
      fi_cq_err_entry older{};
      fi_addr_t src_addr = FI_ADDR_NOTAVAIL;
    } failure;
    EXPECT_EQ(fi_cq_readerr(cq, &failure.older, 0), 1);
    outcome.failure = failure.older;
    outcome.source = failure.src_addr;
    outcome.error = true;
    outcomes_.push_back(outcome);
  } else {
    EXPECT_EQ(got, -FI_EAGAIN);
  }
}

void Endpoint::progress() {
  fi_cq_read(tx_.get(), nullptr, 0);
  fi_cq_read(rx_.get(), nullptr, 0);
}

ssize_t Endpoint::post(const std::function<ssize_t()>& post) {
  const Deadline deadline(std::chrono::seconds(20));
  for (;;) {
    const ssize_t result = post();
    if (result != -FI_EAGAIN || deadline.passed()) return result;
    collect(tx_.get());
    collect(rx_.get());
    yield_processor();
  }
}

void Endpoint::must(const std::function<ssize_t()>& call) { EXPECT_EQ(post(call), 0); }

std::optional<Outcome> Endpoint::await(const void* context, std::chrono::milliseconds limit) {
  const Deadline deadline(limit);
  std::size_t looked = 0;
  for (bool last = false;; last = deadline.passed()) {
    for (; looked < outcomes_.size(); ++looked) {
      const Outcome outcome = outcomes_[looked];
      const void* its = outcome.error ? outcome.failure.op_context : outcome.entry.op_context;
      if (its != context) continue;
      outcomes_.erase(outcomes_.begin() + static_cast<std::ptrdiff_t>(looked));
      return outcome;
    }
    if (last) return std::nullopt;
    collect(tx_.get());
    collect(rx_.get());
    if (looked == outcomes_.size()) yield_processor();
  }
}

Outcome Endpoint::finish(const void* context) {
  const auto outcome = await(context);
  EXPECT_TRUE(outcome.has_value()) << "no completion in time";
  if (!outcome) return {};
  EXPECT_FALSE(outcome->error) << "failed with " << fi_strerror(outcome->failure.err);
  return *outcome;
}

Outcome Endpoint::fail(const void* context, int error) {
  const auto outcome = await(context);
  EXPECT_TRUE(outcome.has_value()) << "no completion in time";
  if (!outcome) return {};
  EXPECT_TRUE(outcome->error) << "succeeded, but " << fi_strerror(error) << " was due";
  EXPECT_EQ(outcome->failure.err, error) << fi_strerror(outcome->failure.err);
  return *outcome;
}

std::optional<Outcome> Endpoint::next(std::chrono::milliseconds limit) {
  const Deadline deadline(limit);
  while (outcomes_.empty() && !deadline.passed()) {
    collect(rx_.get());
    collect(tx_.get());
    if (outcomes_.empty()) yield_processor();
  }
  if (outcomes_.empty()) return std::nullopt;
  const Outcome outcome = outcomes_.front();
  outcomes_.pop_front();
  return outcome;
}

bool Endpoint::silent(std::chrono::milliseconds length) {
  const Deadline deadline(length);
  while (outcomes_.empty() && !deadline.passed()) {
    collect(tx_.get());
    collect(rx_.get());
    yield_processor();
  }
  return outcomes_.empty();
}

Team::Team(Side& side_, const Options& options) : side(side_), endpoint(options) {
  names = side.exchange(endpoint.name());
  for (const Blob& name : names) peers.push_back(endpoint.insert(name));
}

Team::~Team() {
  if (!testing::Test::HasFatalFailure()) meet();
}

std::vector<unsigned char> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = pattern_byte(seed, i);
  return bytes;
}

testing::AssertionResult has_pattern(std::span<const unsigned char> data, std::uint64_t seed) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] != pattern_byte(seed, i)) {
      return testing::AssertionFailure()
             << "byte " << i << " of " << data.size() << " is " << int(data[i]) << " instead of "
             << int(pattern_byte(seed, i)) << " (seed " << seed << ")";
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace conformance
