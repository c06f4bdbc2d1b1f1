// Cuts the tokens of all feeds into passes of bounded size, runs them, and collects the logits that were
// asked for.
#include "runtime/engine.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/thread_pool.h"
#include "runtime/pass.h"

namespace lattice::runtime {
namespace {

// Most rows (tokens) of one pass: enough for matrix products at full speed, few enough to bound the scratch
// buffers.
constexpr int64_t kPassRows = 512;

void CheckFeed(const Model& model, const Feed& feed) {
  const int64_t vocabulary = model.config().vocab_size;
  Check(feed.session != nullptr, "[engine] a feed has no session");
  Check(&feed.session->model() == &model, "[engine] the session belongs to another model than the engine");
  Check(!feed.tokens.empty(), "[engine] no tokens to append; a prompt needs at least one");
  for (const int32_t token : feed.tokens) {
    Check(token >= 0 && token < vocabulary, "[engine] token ", token, " is outside the vocabulary of ",
          vocabulary, "; the tokenizer does not belong to this model");
  }
}

}  // namespace

struct Engine::Work {
  Work(std::shared_ptr<const Model> shared, int count)
      : model(std::move(shared)), threads(count), workspace(threads.threads()) {}

  // Adds tokens [first, first + count) of a feed to the pending pass; runs the pass when it is full.
  void Add(size_t feed, int64_t first, int64_t count);
  // Runs the pending pass, if it has any rows.
  void Flush();

  std::shared_ptr<const Model> model;
  ThreadPool threads;
  Workspace workspace;
  std::span<const Feed> feeds;
  std::vector<int64_t> begins;  // the first row of logits of each feed, and the number of all rows
  std::vector<float> logits;
  int64_t done = 0;  // rows of logits computed so far

  // The pending pass.
  std::vector<SessionRows> segments;
  std::vector<int32_t> tokens;
  std::vector<int64_t> wanted;  // the rows whose logits are wanted
};

void Engine::Work::Add(size_t feed, int64_t first, int64_t count) {
  const Feed& from = feeds[feed];
  const auto row = static_cast<int64_t>(tokens.size());
  segments.push_back({&from.session->state(), row, count, from.observer, first, from.hidden_sum});
  const auto part = from.tokens.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  tokens.insert(tokens.end(), part.begin(), part.end());
  const auto total = static_cast<int64_t>(from.tokens.size());
  for (int64_t t = first; t < first + count; ++t) {
    if (from.want == Want::kAll || (from.want == Want::kLast && t + 1 == total))
      wanted.push_back(row + t - first);
  }
  if (static_cast<int64_t>(tokens.size()) >= kPassRows) Flush();
}

void Engine::Work::Flush() {
  if (segments.empty()) return;
  Pass pass(model->parts(), threads, workspace, segments);
  pass.Run(tokens);
  pass.SumHidden();
  pass.Logits(wanted, logits.data() + done * model->config().vocab_size);
  done += static_cast<int64_t>(wanted.size());
  segments.clear();
  tokens.clear();
  wanted.clear();
}

Engine::Engine(std::shared_ptr<const Model> model, int threads)
    : work_(std::make_unique<Work>(std::move(model), threads)) {}
Engine::~Engine() = default;

const Model& Engine::model() const { return *work_->model; }
Session Engine::NewSession() const { return Session(work_->model); }
int Engine::threads() const { return work_->threads.threads(); }
void Engine::ObserveProducts(ProductObserver* observer) { work_->workspace.observer = observer; }

void Engine::Run(std::span<const Feed> feeds) {
  Work& work = *work_;
  std::set<const Session*> seen;
  for (const Feed& feed : feeds) {
    CheckFeed(*work.model, feed);
    Check(seen.insert(feed.session).second, "[engine] a session comes twice in one batch; join its tokens");
  }
  const model::ModelConfig& config = work.model->config();
  work.feeds = feeds;
  work.begins.assign(1, 0);
  work.done = 0;
  // If an exception ended the previous Run, its pending rows are still here and point to sessions that may
  // be gone.
  work.segments.clear();
  work.tokens.clear();
  work.wanted.clear();
  for (const Feed& feed : feeds) {
    const auto count = static_cast<int64_t>(feed.tokens.size());
    work.begins.push_back(work.begins.back() + (feed.want == Want::kAll ? count : feed.want == Want::kLast));
  }
  work.logits.resize(static_cast<size_t>(work.begins.back() * config.vocab_size));
  for (size_t i = 0; i < feeds.size(); ++i) {
    const auto total = static_cast<int64_t>(feeds[i].tokens.size());
    for (int64_t first = 0; first < total;) {
      const int64_t room = kPassRows - static_cast<int64_t>(work.tokens.size());
      const int64_t count = std::min(room, total - first);
      work.Add(i, first, count);
      first += count;
    }
  }
  work.Flush();
  work.feeds = {};
}

std::span<const float> Engine::Logits(size_t i) const {
  Check(i + 1 < work_->begins.size(), "[engine] there was no feed ", i, " in the last run");
  const auto vocabulary = static_cast<size_t>(work_->model->config().vocab_size);
  const auto first = static_cast<size_t>(work_->begins[i]), last = static_cast<size_t>(work_->begins[i + 1]);
  return std::span(work_->logits).subspan(first * vocabulary, (last - first) * vocabulary);
}

std::span<const float> Engine::Append(Session& session, std::span<const int32_t> tokens) {
  const Feed feed = {&session, tokens};
  Run({&feed, 1});
  return Logits(0);
}

}  // namespace lattice::runtime
