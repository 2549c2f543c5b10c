BEGIN TRANSACTION;
CREATE TABLE alarms (
    key INTEGER PRIMARY KEY, stream INTEGER NOT NULL REFERENCES streams, alarm TEXT NOT NULL,
    made REAL NOT NULL, crc INTEGER NOT NULL
);
INSERT INTO "alarms" VALUES(1,2,'{"kind": "window", "step": 20, "risk": 0, "value": 0.4, "limit": 0.1, "since": null, "said": ""}',1795070549.71238,2855108595);
CREATE TABLE migrations (name TEXT PRIMARY KEY, made REAL NOT NULL);
INSERT INTO "migrations" VALUES('tables',1.79507054963658881181e+09);
CREATE TABLE parts (
    stream INTEGER NOT NULL REFERENCES streams, name TEXT NOT NULL, number INTEGER NOT NULL,
    numbers TEXT NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (stream, name, number)
) WITHOUT ROWID;
CREATE TABLE predictions (
    stream INTEGER NOT NULL REFERENCES streams, number INTEGER NOT NULL, id TEXT NOT NULL,
    receipt TEXT NOT NULL, made REAL NOT NULL, y TEXT, loss TEXT, covered INTEGER, ended TEXT,
    closed REAL, crc INTEGER NOT NULL,
    PRIMARY KEY (stream, number)
) WITHOUT ROWID;
INSERT INTO "predictions" VALUES(1,0,'"p0"','{"$tuple":[[-1.0,1.0],{"$tuple":[-1.0,1.0]},{"$interval":[-1.0,1.0]},0.0,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-3.2658381264339322','1.0',0,'answered',1795070549.71238,2170887052);
INSERT INTO "predictions" VALUES(1,1,'"p6"','{"$tuple":[[-1.0,1.0],{"$tuple":[-1.0,1.0]},{"$interval":[-1.3162700746990095,1.3162700746990095]},0.3162700746990095,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'1.8180620523064182','1.0',0,'answered',1795070549.71238,1755525367);
INSERT INTO "predictions" VALUES(1,2,'"p7"','{"$tuple":[[-1.0,2.0],{"$tuple":[-1.0,2.0]},{"$interval":[-1.3162700746990095,2.3162700746990095]},0.3162700746990095,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-0.7310885324650336','0.0',1,'answered',1795070549.71238,1793433671);
INSERT INTO "predictions" VALUES(1,3,'"p10"','{"$tuple":[[-1.0,2.0],{"$tuple":[-1.0,2.0]},{"$interval":[-1.3162700746990095,2.3162700746990095]},0.3162700746990095,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-3.8507524295824687','1.0',0,'answered',1795070549.71238,1614937336);
INSERT INTO "predictions" VALUES(1,4,'"p11"','{"$tuple":[[-1.0,3.0],{"$tuple":[-1.0,3.0]},{"$interval":[-1.3162700746990095,3.3162700746990095]},0.3162700746990095,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'2.2389626061026933','0.0',1,'answered',1795070549.71238,2560429006);
INSERT INTO "predictions" VALUES(1,5,'"p12"','{"$tuple":[[-1.0,1.0],{"$tuple":[-1.0,1.0]},{"$interval":[-1.7025671053647913,1.7025671053647913]},0.7025671053647912,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-0.18301170877204642','0.0',1,'answered',1795070549.71238,1829012658);
INSERT INTO "predictions" VALUES(1,6,'"p20"','{"$tuple":[[-1.0,3.0],{"$tuple":[-1.0,3.0]},{"$interval":[-1.5874915845055675,3.5874915845055675]},0.5874915845055675,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-5.671581573360075','1.0',0,'answered',1795070549.71238,3775608125);
INSERT INTO "predictions" VALUES(1,7,'"p21"','{"$tuple":[[-1.0,1.0],{"$tuple":[-1.0,1.0]},{"$interval":[-1.5874915845055675,1.5874915845055675]},0.5874915845055675,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-0.07977762938413438','0.0',1,'answered',1795070549.71238,4070051497);
INSERT INTO "predictions" VALUES(1,8,'"p23"','{"$tuple":[[-1.0,3.0],{"$tuple":[-1.0,3.0]},{"$interval":[-1.7304313938187983,3.7304313938187983]},0.7304313938187982,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'0.40234802065324793','0.0',1,'answered',1795070549.71238,59863532);
INSERT INTO "predictions" VALUES(1,9,'"p25"','{"$tuple":[[-1.0,2.0],{"$tuple":[-1.0,2.0]},{"$interval":[-1.9230510574520785,2.9230510574520787]},0.9230510574520785,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'0.1777004151533637','0.0',1,'answered',1795070549.71238,3694202208);
INSERT INTO "predictions" VALUES(1,10,'"p27"','{"$tuple":[[-1.0,1.0],{"$tuple":[-1.0,1.0]},{"$interval":[-1.7095526483334327,1.7095526483334327]},0.7095526483334328,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'0.9712870165863129','0.0',1,'answered',1795070549.71238,184882668);
INSERT INTO "predictions" VALUES(1,11,'"p32"','{"$tuple":[[-1.0,3.0],{"$tuple":[-1.0,3.0]},{"$interval":[-1.7016233459179517,3.7016233459179517]},0.7016233459179518,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'0.31018044114073634','0.0',1,'answered',1795070549.71238,519964964);
INSERT INTO "predictions" VALUES(1,12,'"p33"','{"$tuple":[[-1.0,1.0],{"$tuple":[-1.0,1.0]},{"$interval":[-1.5629585617450892,1.5629585617450892]},0.5629585617450893,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,NULL,NULL,NULL,NULL,NULL,1200599637);
INSERT INTO "predictions" VALUES(2,0,'"p1"','{"$tuple":[[-1.0,2.0],{"$tuple":[-1.0,2.0]},{"$interval":[-1.0,2.0]},0.0,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-1.5168797035946557','1.0',0,'answered',1795070549.71238,2355047389);
INSERT INTO "predictions" VALUES(2,1,'"p2"','{"$tuple":[[-1.0,3.0],{"$tuple":[-1.0,3.0]},{"$interval":[-1.0,3.0]},0.0,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-2.044206340021746','1.0',0,'answered',1795070549.71238,4197387616);
INSERT INTO "predictions" VALUES(2,2,'"p3"','{"$tuple":[[-1.0,1.0],{"$tuple":[-1.0,1.0]},{"$interval":[-1.1068817355788776,1.1068817355788776]},0.10688173557887766,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-2.8736588902050597','1.0',0,'answered',1795070549.71238,3422013502);
INSERT INTO "predictions" VALUES(2,3,'"p4"','{"$tuple":[[-1.0,2.0],{"$tuple":[-1.0,2.0]},{"$interval":[-1.2768959316744688,2.276895931674469]},0.27689593167446874,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-0.2564054158207161','0.0',1,'answered',1795070549.71238,4249313492);
INSERT INTO "predictions" VALUES(2,4,'"p5"','{"$tuple":[[-1.0,3.0],{"$tuple":[-1.0,3.0]},{"$interval":[-1.2768959316744688,3.276895931674469]},0.27689593167446874,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-1.4185642961417222','1.0',0,'answered',1795070549.71238,2305425103);
INSERT INTO "predictions" VALUES(2,5,'"p8"','{"$tuple":[[-1.0,3.0],{"$tuple":[-1.0,3.0]},{"$interval":[-1.6413248715589455,3.6413248715589455]},0.6413248715589456,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-1.741479337632519','1.0',0,'answered',1795070549.71238,318728654);
INSERT INTO "predictions" VALUES(2,6,'"p9"','{"$tuple":[[-1.0,1.0],{"$tuple":[-1.0,1.0]},{"$interval":[-1.6413248715589455,1.6413248715589455]},0.6413248715589456,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-0.6006407612010299','0.0',1,'answered',1795070549.71238,3499967007);
INSERT INTO "predictions" VALUES(2,7,'"p13"','{"$tuple":[[-1.0,2.0],{"$tuple":[-1.0,2.0]},{"$interval":[-1.6413248715589455,2.6413248715589455]},0.6413248715589456,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-4.247449387195587','1.0',0,'answered',1795070549.71238,3825801078);
INSERT INTO "predictions" VALUES(2,8,'"p14"','{"$tuple":[[-1.0,3.0],{"$tuple":[-1.0,3.0]},{"$interval":[-1.7750960652999166,3.7750960652999166]},0.7750960652999166,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'1.3484372328345602','0.0',1,'answered',1795070549.71238,3233566295);
INSERT INTO "predictions" VALUES(2,9,'"p15"','{"$tuple":[[-1.0,1.0],{"$tuple":[-1.0,1.0]},{"$interval":[-1.5207417913582344,1.5207417913582344]},0.5207417913582344,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-1.9524050489632905','1.0',0,'answered',1795070549.71238,1477657540);
INSERT INTO "predictions" VALUES(2,10,'"p16"','{"$tuple":[[-1.0,2.0],{"$tuple":[-1.0,2.0]},{"$interval":[-1.5207417913582344,2.520741791358234]},0.5207417913582344,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-2.971260608296819','1.0',0,'answered',1795070549.71238,4239892219);
INSERT INTO "predictions" VALUES(2,11,'"p17"','{"$tuple":[[-1.0,3.0],{"$tuple":[-1.0,3.0]},{"$interval":[-1.5207417913582344,3.520741791358234]},0.5207417913582344,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-0.9406878135012161','0.0',1,'answered',1795070549.71238,194712721);
INSERT INTO "predictions" VALUES(2,12,'"p18"','{"$tuple":[[-1.0,1.0],{"$tuple":[-1.0,1.0]},{"$interval":[-1.5207417913582344,1.5207417913582344]},0.5207417913582344,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-2.2319691933053365','1.0',0,'answered',1795070549.71238,976084829);
INSERT INTO "predictions" VALUES(2,13,'"p19"','{"$tuple":[[-1.0,2.0],{"$tuple":[-1.0,2.0]},{"$interval":[-1.6797653774926073,2.6797653774926076]},0.6797653774926073,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'2.361218456477315','0.0',1,'answered',1795070549.71238,2861818324);
INSERT INTO "predictions" VALUES(2,14,'"p22"','{"$tuple":[[-1.0,2.0],{"$tuple":[-1.0,2.0]},{"$interval":[-1.6687143402780098,2.66871434027801]},0.6687143402780098,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-1.5322890672504799','0.0',1,'answered',1795070549.71238,3073999025);
INSERT INTO "predictions" VALUES(2,15,'"p24"','{"$tuple":[[-1.0,1.0],{"$tuple":[-1.0,1.0]},{"$interval":[-2.1060661384105694,2.1060661384105694]},1.1060661384105694,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-1.8704796799950816','0.0',1,'answered',1795070549.71238,1864608135);
INSERT INTO "predictions" VALUES(2,16,'"p26"','{"$tuple":[[-1.0,3.0],{"$tuple":[-1.0,3.0]},{"$interval":[-2.33,4.33]},1.33,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'4.696240228953229','1.0',0,'answered',1795070549.71238,704911582);
INSERT INTO "predictions" VALUES(2,17,'"p28"','{"$tuple":[[-1.0,2.0],{"$tuple":[-1.0,2.0]},{"$interval":[-2.415,3.415]},1.415,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-0.9971174891705339','0.0',1,'answered',1795070549.71238,1104992335);
INSERT INTO "predictions" VALUES(2,18,'"p29"','{"$tuple":[[-1.0,3.0],{"$tuple":[-1.0,3.0]},{"$interval":[-2.415,4.415]},1.415,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-1.340321928053008','0.0',1,'answered',1795070549.71238,726797854);
INSERT INTO "predictions" VALUES(2,19,'"p30"','{"$tuple":[[-1.0,1.0],{"$tuple":[-1.0,1.0]},{"$interval":[-2.405,2.405]},1.4049999999999998,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'0.44268428895239803','0.0',1,'answered',1795070549.71238,3724083380);
INSERT INTO "predictions" VALUES(2,20,'"p31"','{"$tuple":[[-1.0,2.0],{"$tuple":[-1.0,2.0]},{"$interval":[-2.343142576477127,3.343142576477127]},1.3431425764771272,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'-1.481829099419373','0.0',1,'answered',1795070549.71238,4260414250);
INSERT INTO "predictions" VALUES(2,21,'"p34"','{"$tuple":[[-1.0,2.0],{"$tuple":[-1.0,2.0]},{"$interval":[-2.38729884576628,3.38729884576628]},1.38729884576628,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,'0.4847840402150967','0.0',1,'answered',1795070549.71238,2753325959);
INSERT INTO "predictions" VALUES(2,22,'"p35"','{"$tuple":[[-1.0,3.0],{"$tuple":[-1.0,3.0]},{"$interval":[-2.230820979018502,4.230820979018501]},1.2308209790185018,0,{"$tuple":[0.0]},{"$tuple":[]},{"$tuple":[]}]}',1795070549.71238,NULL,NULL,NULL,NULL,NULL,2234921499);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL);
INSERT INTO "settings" VALUES('history','500',1505737229);
INSERT INTO "settings" VALUES('window','20',3550504882);
INSERT INTO "settings" VALUES('tolerance','0.1',4200758691);
INSERT INTO "settings" VALUES('controller','"[sets]\npart = \"Widen\"\nsupport = [-inf, inf]\n\n[stretch]\npart = \"ErrorAdaptive\"\nscore = 0.1\nloss = 0.2\nlow = -1.0\nhigh = 1.0\nreading = \"paper\"\n\n[stretch.inner]\npart = \"Identity\"\n\n[combine]\npart = \"Max\"\nempty_if = \"every\"\n\n[[risks]]\nlevel = 0.1\nbounds = [-20.0, 20.0]\nunjudged = \"skip\"\n\n[risks.loss]\npart = \"Miscoverage\"\n\n[risks.step]\npart = \"Fixed\"\ngamma = 0.05\n"',1562760477);
CREATE TABLE streams (
    key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, first TEXT NOT NULL,
    controller TEXT NOT NULL, state TEXT NOT NULL, overview TEXT NOT NULL,
    predictions INTEGER NOT NULL, epoch INTEGER NOT NULL, crc INTEGER NOT NULL,
    overview_crc INTEGER NOT NULL
);
INSERT INTO "streams" VALUES(1,'a','[sets]
part = "Widen"
support = [-inf, inf]

[stretch]
part = "ErrorAdaptive"
score = 0.1
loss = 0.2
low = -1.0
high = 1.0
reading = "paper"

[stretch.inner]
part = "Identity"

[combine]
part = "Max"
empty_if = "every"

[[risks]]
level = 0.1
bounds = [-20.0, 20.0]
unjudged = "skip"

[risks.loss]
part = "Miscoverage"

[risks.step]
part = "Fixed"
gamma = 0.05
','[sets]
part = "Widen"
support = [-inf, inf]

[stretch]
part = "ErrorAdaptive"
score = 0.1
loss = 0.2
low = -1.0
high = 1.0
reading = "paper"

[stretch.inner]
part = "Identity"

[combine]
part = "Max"
empty_if = "every"

[[risks]]
level = 0.2
bounds = [-20.0, 20.0]
unjudged = "skip"

[risks.loss]
part = "Miscoverage"

[risks.step]
part = "Fixed"
gamma = 0.05
','{"risks": [{"theta": 0.13999999999999999, "first": 0.13999999999999999, "judged": 0.0, "unjudged": 0.0, "total": 0.0, "lifts": 0.0, "lifted": 0.0, "loss": [0.0], "step": [0.0]}], "counts": {"full": 0, "empty": 0, "torn": 0, "missing": 0, "dropped": 0, "expired": 0, "inherited": 1, "peak": 1, "fresh": false, "memory": [], "stretch": [0.4229585617450893]}, "table": null, "annex": null, "price": [4.0, 0.31018044114073634, 0.0, 0.0, 0.0, 0.0, 0.0, 1e+300, 1e+300, 30.855814724467496, 12.0, 0.0, 0.0, 1.0, 1.5427907362233748, 1.5427907362233748, 3.9512148364490374, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "window": null, "groups": [], "group_risks": null, "receipts": {"max_pending": 10000, "overflow": "refuse", "serial": 13, "given": 0, "forgetful": false, "waiting": [], "alone": false, "closed": [], "older": [], "former": []}, "earlier": [{"risks": [{"name": "Miscoverage", "level": 0.1, "judged": 12, "unjudged": 0, "mean": 0.3333333333333333, "identity": 0.33333333333333326, "lower": -33.36666666666667, "upper": 33.63333333333333, "constant_lower": -400.4, "constant_upper": 403.59999999999997, "window": 804.0, "window_sided": "both", "growth": 0.0, "spread": 1.0, "theta": 0.13999999999999999, "first": 0.0, "lifts": 0, "lifted": 0.0, "rounding": 7.105427357601002e-14, "premises": [{"text": "the step size is fixed at \u03b3 = 0.05", "holds": true, "needed": "both"}, {"text": "\u03b8 begins at 0, within its bounds [-20, 20]", "holds": true, "needed": "both"}, {"text": "every loss lies in [0, 1]", "holds": true, "needed": "both"}, {"text": "the loss of the full set is at most 0, not above the level 0.1", "holds": true, "needed": "upper"}, {"text": "the loss of the empty set is at least 1, not below the level 0.1", "holds": true, "needed": "lower"}], "unit": ["miss", "misses"], "counted": false, "asked": 0.9, "from_now": null, "habit": 0.0, "worst": null, "coverage": 0.6666666666666667, "excess": 2.8, "account": 2.8, "bound": {"since_start": 403.59999999999997, "from_now": 403.59999999999997, "window": 804.0}, "status": "says nothing yet", "verdict": "says nothing yet; within 0.01 after 40,360 labels", "words": ["66.7 % of the actual values inside; asked 90 % (12 labels)"]}], "full": 0, "empty": 0, "missing": 0, "dropped": 0, "expired": 0, "pending": 1, "most_pending": 4, "groups": {"count": 0, "nearest": []}}], "watch": {"window": 20, "tolerance": 0.1, "limits": [0.1], "step": 12, "losses": [[]], "alarmed": [0], "saturation": {"full": 0, "empty": 0}, "silent": false}}','{"predictions": 13, "pending": 1, "oldest": 1795070549.71238, "at": 1795070549.768307, "lag": 0.0, "alarm": "", "evidence": 0.0, "alarms": {}, "bytes": 386.93361008954935, "labels": 0, "levels": [0.2], "asked": 0.8, "losses": [null], "accounts": [0.0], "bounds": [397.99999999999994], "status": ["no label yet"], "theta": [0.13999999999999999], "full": 0, "empty": 0, "coverage": [0.6666666666666666, 0.6666666666666666], "recent": "33f", "known": 12, "width": 2.961789807044994, "price": null}',13,197406801286338,545216344,689816314);
INSERT INTO "streams" VALUES(2,'b','[sets]
part = "Widen"
support = [-inf, inf]

[stretch]
part = "ErrorAdaptive"
score = 0.1
loss = 0.2
low = -1.0
high = 1.0
reading = "paper"

[stretch.inner]
part = "Identity"

[combine]
part = "Max"
empty_if = "every"

[[risks]]
level = 0.1
bounds = [-20.0, 20.0]
unjudged = "skip"

[risks.loss]
part = "Miscoverage"

[risks.step]
part = "Fixed"
gamma = 0.05
','[sets]
part = "Widen"
support = [-inf, inf]

[stretch]
part = "ErrorAdaptive"
score = 0.1
loss = 0.2
low = -1.0
high = 1.0
reading = "paper"

[stretch.inner]
part = "Identity"

[combine]
part = "Max"
empty_if = "every"

[[risks]]
level = 0.1
bounds = [-20.0, 20.0]
unjudged = "skip"

[risks.loss]
part = "Miscoverage"

[risks.step]
part = "Fixed"
gamma = 0.05
','{"risks":[{"theta":0.3899999999999999,"first":0.0,"judged":22.0,"unjudged":0.0,"total":10.0,"lifts":0.0,"lifted":0.0,"loss":[0.0],"step":[0.0]}],"counts":{"full":0,"empty":0,"torn":0,"missing":0,"dropped":0,"expired":0,"inherited":0,"peak":6,"fresh":true,"memory":[],"stretch":[0.840820979018502]},"table":null,"annex":null,"price":[2.0,0.4847840402150967,3.891126528006241,11.460882844486814,1.9970450592042763,1.9970450592042763,0.0,21.442197583783148,21.442197583783148,31.86026916177501,20.0,0.0,20.0,2.0,1.5930134580887505,1.5930134580887505,4.396225730051869,2.144219758378315,2.144219758378315,0.9726896819029209,4.396225730051869,0.0,1.0,3.283524750194246,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0],"window":null,"groups":[],"group_risks":null,"receipts":{"max_pending":10000,"overflow":"refuse","serial":23,"given":0,"forgetful":false,"waiting":[],"alone":false,"closed":[],"older":[],"former":[]},"earlier":[],"watch":{"window":20,"tolerance":0.1,"limits":[0.1],"step":22,"losses":[[1.0,1.0,1.0,1.0,1.0,0.0,0.0,1.0,0.0,0.0,0.0,1.0,0.0,1.0,1.0,0.0,1.0,0.0,0.0,0.0,0.0,0.0]],"alarmed":[20],"saturation":{"full":0,"empty":0},"silent":false}}','{"predictions": 23, "pending": 1, "oldest": 1795070549.71238, "at": 1795070549.71238, "lag": 0.0, "alarm": "window", "evidence": 0.0, "alarms": {}, "bytes": 375.2822448462651, "labels": 22, "levels": [0.1], "asked": 0.9, "losses": [0.45454545454545453], "accounts": [7.8], "bounds": [405.4], "status": ["says nothing yet"], "theta": [0.3899999999999999], "full": 0, "empty": 0, "coverage": [0.5454545454545454, 0.5454545454545454], "recent": "1ba5f", "known": 22, "width": 4.311791470979346, "price": null}',23,102021577424187,3717119548,1031923501);
CREATE UNIQUE INDEX ids ON predictions (stream, id);
CREATE INDEX waiting ON predictions (stream, number) WHERE ended IS NULL;
CREATE INDEX alarmed ON alarms (stream)
;
COMMIT;
