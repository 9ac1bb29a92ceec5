"""Factorise ratings with one configuration, and report the error of each epoch."""

from factors import errors, make_ratings

import nni

DEFAULTS = {"n_factors": 20, "n_epochs": 20, "init_mean": 0.0, "init_std": 0.1}
DEFAULTS |= {"lr_all": 0.02, "lr_bu": 1, "lr_bi": 1, "lr_pu": 1, "lr_qi": 1}
DEFAULTS |= {"reg_all": 0.05, "reg_bu": 1, "reg_bi": 1, "reg_pu": 1, "reg_qi": 1}


def main():
    train, test = make_ratings()
    for error in errors(DEFAULTS | nni.get_next_parameter(), train, test):
        nni.report_intermediate_result(error)
    nni.report_final_result(error)


if __name__ == "__main__":
    main()
