#include "frontends/cli/train_options.h"

namespace tilewright::cli {

void add_ranks(CLI::App* c, TrainArguments& a) {
  c->add_option("--ranks", a.ranks,
                "try a distributed job here: so many ranks, as threads of this process")
      ->check(CLI::Range(1, 64));
  c->add_option("--bucket-bytes", a.bucket_bytes,
                "of several ranks: gradients are summed in ranges of at least so many bytes; 0: by "
                "their size")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
}

void add_step_times(CLI::App* c, TrainArguments& a) {
  c->add_flag("--bench", a.bench, "time steps on the job's data for --seconds, and write nothing");
  c->add_option("--seconds", a.seconds, "how long to measure")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->add_flag("--json", a.json, "with --bench: the last line is one JSON object");
  c->add_option(
      "--profile", a.trace,
      "with --bench: run for as long again, print what each node takes of all these steps "
      "together, and write a trace of the first of them to this file");
}

void add_scaling(CLI::App* c, TrainArguments& a) {
  auto* scaling =
      c->add_option("--scaling", a.scaling,
                    "predict a step on so many ranks (2,8,64), from what this one computes and how "
                    "the ranks that are there are linked; write nothing")
          ->delimiter(',')
          ->check(CLI::Range(1, 1 << 20));
  c->add_option("--link", a.link,
                "with --scaling: the link as latency and rate (50us,1gbit), where one process is "
                "alone and can measure none")
      ->needs(scaling);
  c->add_option("--page", a.page, "with --scaling: a page with a plot to this file (HTML)")
      ->needs(scaling);
}

}  // namespace tilewright::cli
